#include "merge.cuh"
#include "mutants/wrong_merge.cuh"

using EntryPolicy = cpverify::kernels::Lse16Bit;

#include "merge_entries.inc"
