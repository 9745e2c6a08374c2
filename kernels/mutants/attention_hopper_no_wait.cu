#include "attention_hopper.cuh"
#include "mutants/wrong_attention.cuh"

using EntryPolicy = cpverify::kernels::NoWait;

#include "attention_hopper_entries.inc"
