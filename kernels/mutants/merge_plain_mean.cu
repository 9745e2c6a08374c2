#include "merge.cuh"
#include "mutants/wrong_merge.cuh"

using EntryPolicy = cpverify::kernels::PlainMean;

#include "merge_entries.inc"
