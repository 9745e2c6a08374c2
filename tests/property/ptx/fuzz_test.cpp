#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "property/ptx/fuzz_operations.hpp"
#include "support/rng.hpp"
#include "unit/sim/simulated_device.hpp"

/// Random programs with branches, loops and guards run on the machine, 32 lanes at a time, and on
/// an interpreter that walks the program's tree for one lane after the other. All registers must
/// agree.
namespace cpverify::sim::fuzz {
namespace {

constexpr std::size_t kPrograms = 1500;
constexpr std::size_t kRegisters = 4;  ///< Of each class.
constexpr std::string_view kClasses = "rfdhp";
constexpr std::size_t kWords = kClasses.size() * kRegisters;
constexpr std::size_t kDepthMax = 3;

std::size_t class_index(char name) {
  return kClasses.find(name);
}

/// Registers of one lane: [class][number]; a predicate is 0 or 1.
using Registers = std::array<std::array<std::uint64_t, kRegisters>, kClasses.size()>;

struct Node;
using Block = std::vector<Node>;

struct Node {
  enum class Kind : std::uint8_t { operation, choice, loop };
  Kind kind = Kind::operation;
  const Operation* operation = nullptr;
  std::array<std::size_t, 4> operands{};
  std::size_t predicate = 0;  ///< Of guard and choice.
  bool has_guard = false;
  bool is_negated = false;
  std::size_t counter = 0;  ///< Loop: a register r, of which the low two bits count.
  Block first;              ///< Loop body, or the side taken when the predicate holds.
  Block second;
};

Block random_block(Rng& rng, std::size_t depth);

Node random_node(Rng& rng, std::size_t depth) {
  Node node;
  const std::uint64_t choice = depth < kDepthMax ? rng.next() % 10 : 9;
  node.predicate = rng.next() % kRegisters;
  node.is_negated = rng.next() % 2 == 0;
  if (choice == 0) {
    node.kind = Node::Kind::loop;
    node.counter = rng.next() % kRegisters;
    node.first = random_block(rng, depth + 1);
  } else if (choice <= 2) {
    node.kind = Node::Kind::choice;
    node.first = random_block(rng, depth + 1);
    if (choice == 2) node.second = random_block(rng, depth + 1);
  } else {
    node.operation = &operations()[rng.next() % operations().size()];
    for (std::size_t& operand : node.operands) operand = rng.next() % kRegisters;
    node.has_guard = rng.next() % 4 == 0;
  }
  return node;
}

Block random_block(Rng& rng, std::size_t depth) {
  Block block;
  const std::size_t size = 1 + rng.next() % 9;
  for (std::size_t i = 0; i < size; ++i) block.push_back(random_node(rng, depth));
  return block;
}

/// The program as PTX; labels and loop counters have numbers of their own.
class Writer {
 public:
  [[nodiscard]] std::string body(const Block& program) {
    write(program);
    return text_;
  }
  [[nodiscard]] std::size_t loop_count() const { return loops_; }

 private:
  void write(const Block& block) {
    for (const Node& node : block) {
      switch (node.kind) {
        case Node::Kind::operation:
          write_operation(node);
          break;
        case Node::Kind::choice:
          write_choice(node);
          break;
        case Node::Kind::loop:
          write_loop(node);
          break;
      }
    }
  }
  void write_operation(const Node& node) {
    if (node.has_guard) text_ += guard(node, node.is_negated);
    text_ += node.operation->name;
    for (std::size_t i = 0; i < node.operation->classes.size(); ++i) {
      text_ +=
          fmt::format("{}%{}{}", i == 0 ? " " : ", ", node.operation->classes[i], node.operands[i]);
    }
    text_ += ";\n";
  }
  void write_choice(const Node& node) {
    const std::size_t label = labels_++;
    text_ += guard(node, !node.is_negated) + fmt::format("bra ELSE{};\n", label);
    write(node.first);
    text_ += fmt::format("bra END{0};\nELSE{0}:\n", label);
    write(node.second);
    text_ += fmt::format("END{}:\n", label);
  }
  void write_loop(const Node& node) {
    const std::size_t label = labels_++;
    const std::size_t counter = loops_++;
    text_ += fmt::format(
        "and.b32 %c{0}, %r{1}, 3;\nLOOP{2}: setp.eq.u32 %q0, %c{0}, 0;\n@%q0 bra END{2};\n",
        counter, node.counter, label);
    write(node.first);
    text_ += fmt::format("sub.u32 %c{0}, %c{0}, 1;\nbra LOOP{1};\nEND{1}:\n", counter, label);
  }
  static std::string guard(const Node& node, bool is_negated) {
    return fmt::format("@{}%p{} ", is_negated ? "!" : "", node.predicate);
  }

  std::string text_;
  std::size_t labels_ = 0;
  std::size_t loops_ = 0;
};

void interpret(const Block& block, Registers& registers) {
  auto& predicates = registers[class_index('p')];
  for (const Node& node : block) {
    const bool holds = (predicates[node.predicate] != 0) != node.is_negated;
    if (node.kind == Node::Kind::choice) {
      interpret(holds ? node.first : node.second, registers);
    } else if (node.kind == Node::Kind::loop) {
      const std::uint64_t rounds = registers[class_index('r')][node.counter] % 4;
      for (std::uint64_t i = 0; i < rounds; ++i) interpret(node.first, registers);
    } else if (!node.has_guard || holds) {
      const std::string_view classes = node.operation->classes;
      std::array<std::uint64_t, 3> sources{};
      for (std::size_t i = 1; i < classes.size(); ++i) {
        sources[i - 1] = registers[class_index(classes[i])][node.operands[i]];
      }
      registers[class_index(classes[0])][node.operands[0]] =
          node.operation->evaluate(sources[0], sources[1], sources[2]);
    }
  }
}

/// Loads all registers from memory, runs the body and stores them again.
std::string kernel(const Block& program) {
  Writer writer;
  const std::string body = writer.body(program);
  std::string load;
  std::string store;
  for (std::size_t i = 0; i < kRegisters; ++i) {
    const auto at = [&](char name) { return 8 * (kRegisters * class_index(name) + i); };
    load += fmt::format(
        "ld.global.u32 %r{0}, [%x2+{1}]; ld.global.f32 %f{0}, [%x2+{2}]; ld.global.u64 %d{0}, "
        "[%x2+{3}]; ld.global.u16 %h{0}, [%x2+{4}]; ld.global.u32 %c0, [%x2+{5}]; setp.ne.u32 "
        "%p{0}, %c0, 0;\n",
        i, at('r'), at('f'), at('d'), at('h'), at('p'));
    store += fmt::format(
        "st.global.u32 [%x3+{1}], %r{0}; st.global.f32 [%x3+{2}], %f{0}; st.global.u64 [%x3+{3}], "
        "%d{0}; st.global.u16 [%x3+{4}], %h{0}; selp.u32 %c0, 1, 0, %p{0}; st.global.u32 "
        "[%x3+{5}], "
        "%c0;\n",
        i, at('r'), at('f'), at('d'), at('h'), at('p'));
  }
  return fmt::format(
      ".version 8.0\n.target sm_90\n.address_size 64\n.entry k(.param .u64 in, .param .u64 out) "
      "{{\n"
      ".reg .b32 %r<4>; .reg .f32 %f<4>; .reg .b64 %d<4>; .reg .b16 %h<4>; .reg .pred %p<4>; .reg "
      ".pred %q<1>; .reg .b32 %c<{}>; .reg .b64 %x<4>;\n"
      "mov.u32 %c0, %laneid; ld.param.u64 %x2, [in]; mad.wide.u32 %x2, %c0, {}, %x2; "
      "ld.param.u64 %x3, [out]; mad.wide.u32 %x3, %c0, {}, %x3;\n{}{}{}ret;\n}}\n",
      writer.loop_count() + 1, 8 * kWords, 8 * kWords, load, body, store);
}

/// Zeros, limits, NaN and random bits, cut to the width of the class.
std::uint64_t random_value(Rng& rng, char name) {
  constexpr std::array<std::uint64_t, 14> kEdges{
      0,          1,          31,         0x80000000, 0x7fffffff, 0xffffffff, 0x3f800000,
      0x7f800000, 0xff800000, 0xffc00001, 0x00000007, 0x007fffff, 0xbf000000, 0x4f000000};
  const std::uint64_t bits = rng.next() % 2 == 0 ? kEdges[rng.next() % kEdges.size()] : rng.next();
  if (name == 'p') return rng.next() % 2;
  if (name == 'd') return bits;
  // The upper halves of the edges are those of f16 and bf16.
  if (name == 'h') return (bits >> 16) & 0xffffU;
  return bits & 0xffffffffU;
}

std::vector<Registers> random_lanes(Rng& rng) {
  std::vector<Registers> lanes(32);
  for (Registers& lane : lanes) {
    for (std::size_t c = 0; c < kClasses.size(); ++c) {
      for (std::uint64_t& value : lane[c]) value = random_value(rng, kClasses[c]);
    }
  }
  return lanes;
}

void expect_agreement(std::uint64_t seed) {
  Rng rng{seed};
  Block program;
  for (std::size_t i = 0; i < 4; ++i) program.push_back(random_node(rng, 0));
  for (Node& node : random_block(rng, 0)) program.push_back(node);
  const std::vector<Registers> in = random_lanes(rng);
  const auto threads = static_cast<std::uint32_t>(1 + rng.next() % 32);
  std::vector<Registers> want(in.size());
  for (std::size_t lane = 0; lane < threads; ++lane) {
    want[lane] = in[lane];
    interpret(program, want[lane]);
  }
  SimulatedDevice device;
  const std::uint64_t input = device.upload(in);
  const std::uint64_t output = device.upload(std::vector<Registers>(in.size()));
  const std::string text = kernel(program);
  device.load(text);
  const LaunchResult result =
      device.run("k", shape({1, 1, 1}, {threads, 1, 1}), Parameters{input, output});
  EXPECT_TRUE(result.faults.empty()) << describe(result.faults) << text;
  const auto got = device.download<Registers>(output, in.size());
  for (std::size_t lane = 0; lane < in.size(); ++lane) {
    if (got[lane] == want[lane]) continue;
    for (std::size_t c = 0; c < kClasses.size(); ++c) {
      for (std::size_t i = 0; i < kRegisters; ++i) {
        EXPECT_EQ(got[lane][c][i], want[lane][c][i])
            << "seed " << seed << " lane " << lane << " %" << kClasses[c] << i << "\n"
            << text;
      }
    }
    return;
  }
}

TEST(PtxFuzz, MachineAgreesWithTheInterpreter) {
  for (std::uint64_t seed = 0; seed < kPrograms && !::testing::Test::HasFailure(); ++seed) {
    expect_agreement(seed);
  }
}

/// Each operation on its own, on every lane: random programs may pick one seldom.
TEST(PtxFuzz, EachOperationAgreesWithItsMeaning) {
  for (const Operation& operation : operations()) {
    SCOPED_TRACE(operation.name);
    Rng rng{operation.name.size()};
    for (std::size_t round = 0; round < 8; ++round) {
      Node node;
      node.operation = &operation;
      for (std::size_t& operand : node.operands) operand = rng.next() % kRegisters;
      const Block program{node};
      const std::vector<Registers> in = random_lanes(rng);
      SimulatedDevice device;
      const std::uint64_t input = device.upload(in);
      const std::uint64_t output = device.upload(std::vector<Registers>(in.size()));
      device.load(kernel(program));
      const LaunchResult result =
          device.run("k", shape({1, 1, 1}, {32, 1, 1}), Parameters{input, output});
      EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
      const auto got = device.download<Registers>(output, in.size());
      for (std::size_t lane = 0; lane < in.size(); ++lane) {
        Registers want = in[lane];
        interpret(program, want);
        EXPECT_EQ(got[lane], want) << lane;
      }
    }
  }
}

}  // namespace
}  // namespace cpverify::sim::fuzz
