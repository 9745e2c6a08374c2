#include "attention_mma.cuh"
#include "attention_policy.cuh"

using EntryPolicy = cpverify::kernels::CorrectAttention;

#include "attention_mma_entries.inc"
