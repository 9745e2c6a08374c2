#include "attention_hopper.cuh"
#include "attention_policy.cuh"

using EntryPolicy = cpverify::kernels::CorrectAttention;

#include "attention_hopper_entries.inc"
