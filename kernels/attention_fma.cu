#include "attention_fma.cuh"
#include "attention_policy.cuh"

using EntryPolicy = cpverify::kernels::CorrectAttention;

#include "attention_fma_entries.inc"
