#include "merge.cuh"
#include "mutants/wrong_merge.cuh"

using EntryPolicy = cpverify::kernels::UnguardedEmptyMerge;

#include "merge_entries.inc"
