// The promises of kernels/contracts/attention_fma.md, attention_mma.md and attention_hopper.md, for
// every entry and every compiler that built it, on the simulated machine.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/kernels/attention_case.hpp"
#include "contract/kernels/kernel_bench.hpp"
#include "cpverify/dtype.hpp"

namespace cpverify::tests {
namespace {

struct Subject {
  std::string module;  ///< "kernels/attention_mma"
  DType dtype = DType::f32;
  std::int32_t head_dim = 0;
};

void PrintTo(const Subject& subject, std::ostream* out) {
  *out << subject.module << ' ' << name(subject.dtype) << ' ' << subject.head_dim;
}

std::vector<Subject> subjects() {
  std::vector<Subject> all;
  for (const std::string& folder : kernel_folders()) {
    // By nvcc only, as the folder says.
    if (folder == "kernels-nvcc/") {
      for (const std::int32_t head_dim : {64, 128}) {
        all.push_back({folder + "attention_hopper", DType::bf16, head_dim});
      }
    }
    for (const std::int32_t head_dim : {32, 64, 128}) {
      for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
        all.push_back({folder + "attention_fma", dtype, head_dim});
        if (dtype != DType::f32) all.push_back({folder + "attention_mma", dtype, head_dim});
      }
    }
  }
  return all;
}

std::string test_name(const testing::TestParamInfo<Subject>& info) {
  std::string text =
      fmt::format("{}_{}_d{}", info.param.module, name(info.param.dtype), info.param.head_dim);
  std::replace_if(
      text.begin(), text.end(), [](char letter) { return letter == '/' || letter == '-'; }, '_');
  return text;
}

/// Bits, so that NaN equals itself and -0 differs from +0.
std::vector<std::uint32_t> bits(const std::vector<float>& values) {
  std::vector<std::uint32_t> words(values.size());
  std::memcpy(words.data(), values.data(), values.size() * sizeof(float));
  return words;
}

std::vector<float> joined(std::vector<float> first, const std::vector<float>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

class AttentionContract : public testing::TestWithParam<Subject> {
 protected:
  [[nodiscard]] AttentionShape shape(std::int32_t num_heads_q, std::int32_t num_heads_kv,
                                     std::int32_t block_size) const {
    return {GetParam().dtype, GetParam().head_dim, num_heads_q, num_heads_kv, block_size};
  }

  /// Runs without faults, or says which.
  [[nodiscard]] AttentionResult run(const AttentionCase& data) const {
    AttentionResult result = run_attention(GetParam().module, data);
    for (const Fault& fault : result.faults) {
      ADD_FAILURE() << fault.source_file << ':' << fault.source_line << ": " << fault.detail;
    }
    return result;
  }
};

TEST_P(AttentionContract, IsWithinTheBoundOnRaggedBatches) {
  // One key, a decode row, no query, a prompt, a chunk over a prefix; lengths around tile (32),
  // page (7) and query tile (64, 16, 4) limits. Unwritten page tails are read at the price of a
  // fault. Three query heads share each KV head.
  const AttentionCase data = make_case(shape(6, 2, 7), {{1, 1}, {1, 40}, {0, 7}, {5, 5}, {17, 33}});
  expect_correct(GetParam().module, data, run(data));
}

TEST_P(AttentionContract, IsWithinTheBoundOverSeveralQueryTiles) {
  const AttentionCase data = make_case(shape(1, 1, 1), {{66, 97}});
  expect_correct(GetParam().module, data, run(data));
}

TEST_P(AttentionContract, GivesEmptyRowsZeroAndMinusInfinity) {
  // Of three queries over two keys the first sees none; two queries over no key see none.
  const AttentionCase data = make_case(shape(2, 1, 16), {{3, 2}, {2, 0}});
  const AttentionResult result = run(data);
  expect_correct(GetParam().module, data, result);
  const auto head_dim = static_cast<std::size_t>(GetParam().head_dim);
  for (const std::size_t row : {0U, 3U, 4U}) {
    for (const std::size_t head : {0U, 1U}) {
      const std::size_t index = row * 2 + head;
      EXPECT_EQ(result.lse.at(index), -std::numeric_limits<float>::infinity());
      for (std::size_t dim = 0; dim < head_dim; ++dim) {
        EXPECT_EQ(bits({result.out.at(index * head_dim + dim)}), bits({0.0F}));
      }
    }
  }
}

// Scores up to about 40, capped at 3: most are at one of the ends, and none may pass it.
TEST_P(AttentionContract, CapsLargeScores) {
  AttentionShape capped = shape(6, 2, 7);
  capped.soft_cap = 3.0F;
  capped.query_factor = 8.0F;
  const AttentionCase data = make_case(capped, {{1, 1}, {1, 40}, {0, 7}, {17, 33}, {66, 97}});
  const AttentionResult result = run(data);
  expect_correct(GetParam().module, data, result);
  // The LSE of n scores of at most 3 is at most 3 + ln n, and ln 97 = 4.575.
  EXPECT_THAT(result.lse, testing::Each(testing::Le(7.58F)));
}

TEST_P(AttentionContract, HardlyChangesScoresFarBelowTheCap) {
  AttentionShape capped = shape(2, 1, 16);
  capped.soft_cap = 500.0F;
  const AttentionCase data = make_case(capped, {{17, 33}});
  expect_correct(GetParam().module, data, run(data));
}

TEST_P(AttentionContract, CountsASinkOncePerRow) {
  AttentionShape with_sinks = shape(6, 2, 7);
  with_sinks.has_sinks = true;
  const AttentionCase data = make_case(with_sinks, {{1, 1}, {1, 40}, {0, 7}, {17, 33}, {66, 97}});
  expect_correct(GetParam().module, data, run(data));
}

TEST_P(AttentionContract, GivesRowsWithoutKeysTheirSink) {
  AttentionShape with_sinks = shape(3, 1, 16);
  with_sinks.has_sinks = true;
  const AttentionCase data = make_case(with_sinks, {{3, 2}, {2, 0}});
  const AttentionResult result = run(data);
  expect_correct(GetParam().module, data, result);
  const auto head_dim = static_cast<std::size_t>(GetParam().head_dim);
  for (const std::size_t row : {0U, 3U, 4U}) {
    for (const std::size_t head : {0U, 1U, 2U}) {
      const std::size_t index = row * 3 + head;
      EXPECT_FLOAT_EQ(result.lse.at(index), sink_of(static_cast<std::int32_t>(head)));
      for (std::size_t dim = 0; dim < head_dim; ++dim) {
        EXPECT_EQ(bits({result.out.at(index * head_dim + dim)}), bits({0.0F}));
      }
    }
  }
}

// One key; a tile (32) less one, and more than that by one; a page (7); hopper's tile (64); longer
// than any row.
TEST_P(AttentionContract, ShowsTheLastKeysOfAWindowOnly) {
  for (const std::int32_t window : {1, 7, 31, 32, 33, 64, 65, 1000}) {
    SCOPED_TRACE(window);
    AttentionShape windowed = shape(2, 1, 7);
    windowed.window = window;
    const AttentionCase data =
        make_case(windowed, {{1, 1}, {1, 97}, {0, 7}, {3, 2}, {17, 33}, {70, 135}});
    expect_correct(GetParam().module, data, run(data));
  }
}

TEST_P(AttentionContract, GivesARowTheSameBitsInAnyCallWithAWindow) {
  AttentionShape windowed = shape(2, 1, 16);
  windowed.window = 40;
  windowed.has_sinks = true;
  const AttentionCase whole = make_case(windowed, {{66, 140}});
  const AttentionResult all = run(whole);
  for (const std::int32_t first : {0, 3, 50}) {
    const AttentionResult part = run(only_queries(whole, first, 7));
    const auto begin = static_cast<std::ptrdiff_t>(first) * 2;
    const std::vector<float> lse{all.lse.begin() + begin, all.lse.begin() + begin + 14};
    EXPECT_EQ(bits(part.lse), bits(lse)) << first;
    const std::ptrdiff_t dims = GetParam().head_dim;
    const std::vector<float> out{all.out.begin() + begin * dims,
                                 all.out.begin() + (begin + 14) * dims};
    EXPECT_EQ(bits(part.out), bits(out)) << first;
  }
}

TEST_P(AttentionContract, CapsAndCountsSinksWithinAWindow) {
  AttentionShape all = shape(6, 2, 7);
  all.soft_cap = 5.0F;
  all.query_factor = 4.0F;
  all.has_sinks = true;
  all.window = 20;
  const AttentionCase data = make_case(all, {{1, 1}, {1, 40}, {2, 0}, {17, 33}, {66, 97}});
  expect_correct(GetParam().module, data, run(data));
}

// Also where queries outnumber keys, and over tile limits of keys (32, 64) and queries (4, 16, 64).
TEST_P(AttentionContract, ShowsEveryQueryAllKeysWithoutTheCausalMask) {
  AttentionShape all_keys = shape(4, 2, 7);
  all_keys.is_causal = false;
  const AttentionCase data =
      make_case(all_keys, {{1, 1}, {3, 33}, {5, 2}, {2, 0}, {17, 16}, {0, 9}, {66, 65}});
  expect_correct(GetParam().module, data, run(data));
}

// Six query heads, those of three ranks, over one KV head; each head as if it were alone.
TEST_P(AttentionContract, AttendsWithTheQueryHeadsOfSeveralRanks) {
  AttentionShape gathered = shape(6, 1, 16);
  gathered.is_causal = false;
  const AttentionCase data = make_case(gathered, {{3, 40}});
  const AttentionResult result = run(data);
  expect_correct(GetParam().module, data, result);
  AttentionCase one_head = data;
  one_head.shape.num_heads_q = 1;
  const auto head_dim = static_cast<std::ptrdiff_t>(GetParam().head_dim);
  const std::vector<float>& q = data.sequences[0].q;
  one_head.sequences[0].q.clear();
  for (const std::ptrdiff_t query : {0, 1, 2}) {
    const auto head = q.begin() + (query * 6 + 4) * head_dim;
    one_head.sequences[0].q.insert(one_head.sequences[0].q.end(), head, head + head_dim);
  }
  const AttentionResult alone = run(one_head);
  for (const std::size_t query : {0U, 1U, 2U}) {
    EXPECT_EQ(bits({result.lse.at(query * 6 + 4)}), bits({alone.lse.at(query)}));
  }
}

TEST_P(AttentionContract, RowBitsDoNotDependOnTheOtherRows) {
  // 40 queries: rows 0-22 alone sit in other warps, lanes and query tiles than rows 23-39 alone,
  // and see fewer key tiles than the CTA of the whole call visits.
  const AttentionCase whole = make_case(shape(2, 1, 16), {{40, 100}});
  const AttentionResult early = run(only_queries(whole, 0, 23));
  const AttentionResult late = run(only_queries(whole, 23, 17));
  const AttentionResult all = run(whole);
  EXPECT_EQ(bits(joined(early.out, late.out)), bits(all.out));
  EXPECT_EQ(bits(joined(early.lse, late.lse)), bits(all.lse));
}

TEST_P(AttentionContract, RowBitsDoNotDependOnPages) {
  const AttentionResult small_pages = run(make_case(shape(1, 1, 3), {{9, 50}}));
  const AttentionResult large_pages = run(make_case(shape(1, 1, 64), {{9, 50}}));
  EXPECT_EQ(bits(small_pages.out), bits(large_pages.out));
  EXPECT_EQ(bits(small_pages.lse), bits(large_pages.lse));
}

TEST_P(AttentionContract, AddressesPoolsOfMoreThan32Bits) {
  AttentionShape far = shape(1, 1, 16);
  far.first_block = std::int32_t{1} << 27;  // Slot numbers from 2^31 on.
  const AttentionResult result = run(make_case(far, {{2, 20}}));
  const AttentionResult near = run(make_case(shape(1, 1, 16), {{2, 20}}));
  EXPECT_EQ(bits(result.out), bits(near.out));
  EXPECT_EQ(bits(result.lse), bits(near.lse));
}

TEST_P(AttentionContract, ANanKeyReachesTheRowsThatSeeIt) {
  AttentionCase data = make_case(shape(1, 1, 16), {{4, 4}});
  data.sequences[0].k[static_cast<std::size_t>(GetParam().head_dim) * 2] =
      std::numeric_limits<float>::quiet_NaN();  // Dimension 0 of key 2.
  const AttentionResult result = run_attention(GetParam().module, data);
  // Nancheck sees that a key is a NaN, not that the kernel has made one.
  EXPECT_THAT(result.faults, testing::Not(testing::IsEmpty()));
  EXPECT_THAT(result.faults, testing::Each(testing::Field(&Fault::kind, FaultKind::nan_read)));
  for (const std::size_t row : {0U, 1U, 2U, 3U}) {
    EXPECT_EQ(std::isnan(result.lse.at(row)), row >= 2);
    EXPECT_EQ(std::isnan(result.out.at(row * static_cast<std::size_t>(GetParam().head_dim))),
              row >= 2);
  }
}

/// Warps that copy and warps that compute share a ring of two stages: five key tiles, two CTAs.
TEST(AttentionHopper, HasNoRaces) {
  for (const Subject& subject : subjects()) {
    if (!subject.module.ends_with("_hopper")) continue;
    const AttentionCase data = make_case({subject.dtype, subject.head_dim, 1, 1, 16}, {{130, 260}});
    const AttentionResult result = run_attention(subject.module, data, true);
    for (const Fault& fault : result.faults) {
      ADD_FAILURE() << fault.source_file << ':' << fault.source_line << ": " << fault.detail;
    }
    expect_correct(subject.module, data, result);
  }
}

INSTANTIATE_TEST_SUITE_P(All, AttentionContract, testing::ValuesIn(subjects()), test_name);

}  // namespace
}  // namespace cpverify::tests
