// What the simulator and the plans rely on in the PTX of our kernels, for every compiler that built
// them. That ptxas accepts the files is checked beside, in CMakeLists.txt.

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/kernels/ptx_text.hpp"

namespace cpverify::tests {
namespace {

using Entries = std::map<std::string, std::vector<std::string>>;

const std::filesystem::path kBuild{CPVERIFY_BINARY_DIR};

std::vector<std::string> types_of(const std::string& letters) {
  // p: pointer or s64, i: s32, f: f32. PTX calls integers of both signs .u32 and .u64.
  const std::map<char, std::string> names{{'p', ".u64"}, {'i', ".u32"}, {'f', ".f32"}};
  std::vector<std::string> types;
  for (const char letter : letters) types.push_back(names.at(letter));
  return types;
}

Entries attention_entries(const std::string& module, const std::vector<std::string>& dtypes) {
  Entries entries;
  for (const std::string& dtype : dtypes) {
    for (const char* head_dim : {"32", "64", "128"}) {
      // Eight tensors, then num_seqs, max_pages, block_size, two head counts, softmax_scale_log2,
      // is_causal.
      entries[fmt::format("{}_{}_d{}", module, dtype, head_dim)] = types_of("ppppppppiiiiifi");
    }
  }
  return entries;
}

Entries merge_entries() {
  Entries entries;
  for (const std::string dtype : {"f32", "f16", "bf16"}) {
    entries["merge_partials_" + dtype] = types_of("ppppiiiipp");
    entries["merge_partials_base2_" + dtype] = types_of("ppppiiiipp");
    entries["merge_states_" + dtype] = types_of("pppppppiii");
    entries["scale_by_lse_" + dtype] = types_of("ppppiiiiip");
    entries["pack_partial_" + dtype] = types_of("pppiiii");
    entries["merge_packed_" + dtype] = types_of("pppiiii");
    if (dtype == "f32") continue;
    entries["merge_states_" + dtype + "_f32_f32"] = types_of("pppppppiii");
    entries["merge_states_" + dtype + "_f32_" + dtype] = types_of("pppppppiii");
    entries["merge_states_f32_f32_" + dtype] = types_of("pppppppiii");
    entries["scale_by_lse_" + dtype + "_f32"] = types_of("ppppiiiiip");
  }
  return entries;
}

/// The table "Kernels" of docs/plan.md.
Entries expected_entries(const std::string& module) {
  if (module == "kv_write") return {{"kv_write", types_of("pppppiip")}};
  if (module == "rows") {
    return {{"gather_rows", types_of("pppiipp")},
            {"scatter_rows", types_of("pppiipp")},
            {"pad_rows", types_of("piiip")}};
  }
  if (module == "merge") return merge_entries();
  if (module == "attention_fma") return attention_entries(module, {"f32", "f16", "bf16"});
  if (module == "attention_hopper") {
    Entries entries = attention_entries(module, {"bf16"});
    entries.erase("attention_hopper_bf16_d32");
    return entries;
  }
  return attention_entries(module, {"f16", "bf16"});
}

// A PTX file is named by its path in the build folder, without extension.

std::string text_of(const std::string& file) {
  return read_ptx(kBuild / (file + ".ptx"));
}

const std::vector<std::string> kModules{"kv_write",      "rows",          "merge",
                                        "attention_fma", "attention_mma", "attention_hopper"};

/// The module whose entries a file has: itself, or the one that a mutant is a mutant of.
std::string module_of(const std::string& file) {
  const std::string name = std::filesystem::path{file}.filename().string();
  const auto module = std::find_if(
      kModules.begin(), kModules.end(),
      [&](const std::string& prefix) { return name.compare(0, prefix.size(), prefix) == 0; });
  return module == kModules.end() ? "" : *module;
}

std::vector<std::string> modules() {
  std::vector<std::string> files;
  for (const char* folder : {"kernels/", "kernels-nvcc/"}) {
    if (!std::filesystem::exists(kBuild / folder)) continue;  // No nvcc here.
    for (const std::string& module : kModules) {
      // Of sm_90a: by nvcc only.
      if (module == "attention_hopper" && folder != std::string_view{"kernels-nvcc/"}) continue;
      files.push_back(folder + module);
    }
  }
  return files;
}

std::vector<std::string> mutants() {
  std::vector<std::string> files;
  for (const char* name : {"attention_fma_causal_plus_one",
                           "attention_fma_empty_row_finite",
                           "attention_fma_lse_base2",
                           "attention_fma_page_rounded",
                           "attention_fma_unguarded_empty_row",
                           "attention_mma_causal_plus_one",
                           "attention_mma_crowded_barrier",
                           "attention_mma_divergent_barrier",
                           "attention_mma_divergent_shuffle",
                           "attention_mma_empty_row_finite",
                           "attention_mma_lse_base2",
                           "attention_mma_missing_barrier",
                           "attention_mma_no_trailing_barrier",
                           "attention_mma_no_wait",
                           "kv_write_negative_slot",
                           "kv_write_one_slot",
                           "merge_blocks_reversed",
                           "merge_lse_16_bit",
                           "merge_lse_base_swapped",
                           "merge_lse_transposed",
                           "merge_missing_rescale",
                           "merge_multiplied_empty",
                           "merge_plain_mean",
                           "merge_unguarded_empty_row"}) {
    files.push_back(std::string{"kernels/mutants/"} + name);
  }
  return files;
}

std::vector<std::string> all_files() {
  std::vector<std::string> files = modules();
  for (const std::string& mutant : mutants()) files.push_back(mutant);
  return files;
}

class KernelPtx : public testing::TestWithParam<std::string> {};

TEST_P(KernelPtx, HasTheEntriesAndParametersOfThePlanPage) {
  EXPECT_EQ(entries_of(text_of(GetParam())), expected_entries(module_of(GetParam())));
}

TEST_P(KernelPtx, HasNoCallsAndNoLocalMemory) {
  const std::string ptx = text_of(GetParam());
  EXPECT_THAT(ptx, testing::Not(testing::HasSubstr(".local")));
  EXPECT_THAT(opcodes_of(ptx), testing::Not(testing::Contains(testing::StartsWith("call"))));
}

TEST_P(KernelPtx, NamesTheStateSpaceOfEveryAccess) {
  for (const std::string& opcode : opcodes_of(text_of(GetParam()))) {
    // ld.u32 and ld.v4.u32 are generic, ld.global.u32 is not.
    const std::string access = opcode.substr(0, 3);
    if (access != "ld." && access != "st.") continue;
    const std::string space = opcode.substr(3, opcode.find('.', 3) - 3);
    EXPECT_THAT(space, testing::AnyOf("global", "param", "shared")) << opcode;
  }
}

TEST_P(KernelPtx, LeavesNoChoiceOfContractionToPtxas) {
  // ptxas may fuse add.f32 and mul.f32, but not add.rn.f32 and mul.rn.f32.
  EXPECT_THAT(opcodes_of(text_of(GetParam())),
              testing::Not(testing::Contains(testing::AnyOf("add.f32", "sub.f32", "mul.f32"))));
}

TEST_P(KernelPtx, NamesSourcesFromTheRepositoryRoot) {
  const std::vector<std::string> sources = source_files_of(text_of(GetParam()));
  EXPECT_FALSE(sources.empty());
  for (const std::string& source : sources) {
    EXPECT_THAT(source, testing::StartsWith("kernels/"));
    EXPECT_TRUE(std::filesystem::exists(std::filesystem::path{CPVERIFY_SOURCE_DIR} / source))
        << source;
  }
}

/// 128, or three warpgroups.
TEST_P(KernelPtx, IsBoundToItsThreads) {
  const std::string ptx = text_of(GetParam());
  const std::string bound =
      module_of(GetParam()) == "attention_hopper" ? ".maxntid 384" : ".maxntid 128";
  std::size_t bounds = 0;
  for (std::size_t at = ptx.find(bound); at != std::string::npos; at = ptx.find(bound, at + 1)) {
    ++bounds;
  }
  EXPECT_EQ(bounds, expected_entries(module_of(GetParam())).size());
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& letter : name) {
    if (letter == '/' || letter == '-') letter = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, KernelPtx, testing::ValuesIn(all_files()), test_name);

class KernelMutant : public testing::TestWithParam<std::string> {};

TEST_P(KernelMutant, DiffersFromTheCorrectKernelInItsInstructions) {
  const std::string correct = "kernels/" + module_of(GetParam());
  EXPECT_NE(without_line_table(text_of(GetParam())), without_line_table(text_of(correct)));
}

INSTANTIATE_TEST_SUITE_P(All, KernelMutant, testing::ValuesIn(mutants()), test_name);

TEST(AttentionMma, UsesTensorCoresAndAsynchronousCopies) {
  for (const std::string& file : modules()) {
    if (module_of(file) != "attention_mma") continue;
    const std::vector<std::string> opcodes = opcodes_of(text_of(file));
    EXPECT_THAT(opcodes,
                testing::IsSupersetOf({"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
                                       "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
                                       "ldmatrix.sync.aligned.m8n8.x4.shared.b16",
                                       "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16",
                                       "cp.async.cg.shared.global", "cp.async.wait_group"}));
  }
}

TEST(PtxText, ReadsEntriesOpcodesAndFiles) {
  const std::string ptx =
      ".file 1 \"kernels/a.cu\"\n"
      ".visible .entry f(\n.param .u64 f_0,\n.param .f32 f_1\n)\n{\n"
      "LBB0_1:\n\t@%p1 bra \tLBB0_1;\n\tld.global.u32 %r1, [%rd1];\n\tret;\n}\n";
  EXPECT_EQ(entries_of(ptx), (Entries{{"f", {".u64", ".f32"}}}));
  EXPECT_EQ(opcodes_of(ptx), (std::vector<std::string>{"bra", "ld.global.u32", "ret"}));
  EXPECT_EQ(source_files_of(ptx), std::vector<std::string>{"kernels/a.cu"});
}

}  // namespace
}  // namespace cpverify::tests
