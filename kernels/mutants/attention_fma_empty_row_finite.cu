#include "attention_fma.cuh"
#include "mutants/wrong_attention.cuh"

using EntryPolicy = cpverify::kernels::EmptyRowFinite;

#include "attention_fma_entries.inc"
