#include "merge.cuh"
#include "mutants/wrong_merge.cuh"

using EntryPolicy = cpverify::kernels::MultipliedEmpty;

#include "merge_entries.inc"
