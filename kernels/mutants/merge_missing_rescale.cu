#include "merge.cuh"
#include "mutants/wrong_merge.cuh"

using EntryPolicy = cpverify::kernels::MissingRescale;

#include "merge_entries.inc"
