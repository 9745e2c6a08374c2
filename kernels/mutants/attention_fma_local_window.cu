#include "attention_fma.cuh"
#include "mutants/wrong_attention.cuh"

using EntryPolicy = cpverify::kernels::LocalWindow;

#include "attention_fma_entries.inc"
