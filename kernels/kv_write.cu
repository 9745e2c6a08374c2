#include "kv_write.cuh"

using EntryPolicy = cpverify::kernels::CorrectKvWrite;

#include "kv_write_entries.inc"
