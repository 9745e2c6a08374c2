#include "attention_mma.cuh"
#include "mutants/wrong_attention.cuh"

using EntryPolicy = cpverify::kernels::EmptyRowFinite;

#include "attention_mma_entries.inc"
