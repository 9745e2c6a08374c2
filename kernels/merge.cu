#include "merge.cuh"
#include "merge_policy.cuh"

using EntryPolicy = cpverify::kernels::CorrectMerge;

#include "merge_entries.inc"
