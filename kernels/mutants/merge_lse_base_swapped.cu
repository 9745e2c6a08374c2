#include "merge.cuh"
#include "mutants/wrong_merge.cuh"

using EntryPolicy = cpverify::kernels::LseBaseSwapped;

#include "merge_entries.inc"
