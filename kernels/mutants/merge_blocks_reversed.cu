#include "merge.cuh"
#include "mutants/wrong_merge.cuh"

using EntryPolicy = cpverify::kernels::BlocksReversed;

#include "merge_entries.inc"
