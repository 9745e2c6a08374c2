#include "defects/defect.cuh"

namespace kernels = cpverify::kernels;

/// A padded row's factor is infinite, and its values are zeros.
extern "C" __global__ void zero_times_infinity(const float* in, const float* factors, float* out) {
  const int i = kernels::thread_index();
  out[i] = in[i] * factors[i];  // defect
}

/// A mask is taken away from the scores that it was added to.
extern "C" __global__ void infinity_minus_infinity(const float* scores, const float* mask,
                                                   float* out) {
  const int i = kernels::thread_index();
  out[i] = scores[i] - mask[i];  // defect
}

/// The mean of a row without values.
extern "C" __global__ void mean_of_nothing(const float* in, const int* counts, float* out) {
  const int row = kernels::thread_index();
  float sum = 0.0F;
#pragma unroll 1
  for (int i = 0; i < counts[row]; ++i) sum += in[row * 4 + i];
  out[row] = sum / static_cast<float>(counts[row]);  // defect
}

/// The reciprocal of a scale that is 0, as that of a tensor of zeros is.
extern "C" __global__ void reciprocal_of_zero(const float* scales, float* out) {
  const int i = kernels::thread_index();
  out[i] = 1.0F / scales[i];  // defect
}

/// What rounding leaves of the variance of equal values is negative.
extern "C" __global__ void root_of_negative(const float* mean, const float* mean_of_squares,
                                            float* out) {
  const int i = kernels::thread_index();
  const float variance = mean_of_squares[i] - mean[i] * mean[i];
  out[i] = kernels::square_root(variance);  // defect
}

/// The sum whose logarithm is taken has lost its maximum, and its sign.
extern "C" __global__ void logarithm_of_negative(const float* sums, float* out) {
  const int i = kernels::thread_index();
  out[i] = kernels::log2_approximate(sums[i]) * kernels::kLn2;  // defect
}

/// A sum above 65504, the largest f16, rounds to infinity.
extern "C" __global__ void overflow_to_half(const float* in, unsigned short* out) {
  const int i = kernels::thread_index();
  out[i] = kernels::half_bits(in[i] + in[i]);  // defect
}

/// Exponentials of scores from which the maximum has not been taken away.
extern "C" __global__ void softmax_without_maximum(const float* scores, float* out) {
  const int i = kernels::thread_index();
  const float weight = kernels::exp2_approximate(scores[i]);  // defect
  out[i] = weight;
}

/// A row that the mask leaves nothing of: its maximum is -inf.
extern "C" __global__ void softmax_of_masked_row(const float* scores, float* out, int num_keys) {
  const int i = kernels::thread_index();
  const float score = i < num_keys ? scores[i] : kernels::kNegativeInfinity;
  const float largest = kernels::warp_maximum(score);
  const float weight = kernels::exp2_approximate(score - largest);  // defect
  const float sum = kernels::warp_sum(weight);
  out[i] = weight / sum;
}

/// Of two partial results that saw no key, both weights are 0.
extern "C" __global__ void merge_of_empty_partials(const float* outs, const float* lses,
                                                   float* out) {
  const int i = kernels::thread_index();
  const float largest = kernels::maximum(lses[0], lses[1]);
  const float base = largest == kernels::kNegativeInfinity ? 0.0F : largest;
  const float first = kernels::exp2_approximate(lses[0] - base);
  const float second = kernels::exp2_approximate(lses[1] - base);
  const float sum = first * outs[i] + second * outs[32 + i];
  out[i] = sum / (first + second);  // defect
}

extern "C" __global__ void normalise(const float* in, const float* norms, float* rows) {
  const int i = kernels::thread_index();
  rows[i] = in[i] / norms[i / 16];  // defect
}

extern "C" __global__ void add_bias(const float* rows, const float* bias, float* sums) {
  const int i = kernels::thread_index();
  sums[i] = rows[i] + bias[i];
}

extern "C" __global__ void reverse(const float* sums, float* out) {
  __shared__ float tile[32];
  const int i = kernels::thread_index();
  tile[i] = sums[i];
  kernels::barrier();
  out[i] = tile[31 - i];
}
