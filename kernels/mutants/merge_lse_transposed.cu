#include "merge.cuh"
#include "mutants/wrong_merge.cuh"

using EntryPolicy = cpverify::kernels::LseTransposed;

#include "merge_entries.inc"
