#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/scenario.hpp"
#include "unit/scenario/scenario_text.hpp"

// Every mistake that a scenario can hold, with the exact place that the message must name.
namespace cpverify {
namespace {

using test::error_of;
using test::ScenarioText;
using testing::HasSubstr;
using testing::StartsWith;

std::string with_model(const std::string& line) {
  return error_of(ScenarioText{.model = line}.text());
}
std::string with_topology(const std::string& line) {
  return error_of(ScenarioText{.topology = line}.text());
}
std::string with_cache(const std::string& line) {
  return error_of(ScenarioText{.cache = line}.text());
}
std::string with_requests(const std::string& line) {
  return error_of(ScenarioText{.requests = line}.text());
}
std::string with_rest(const std::string& line) {
  return error_of(ScenarioText{.rest = line}.text());
}

TEST(ReaderErrors, TheTextThatTheseTestsSpoilIsAccepted) {
  EXPECT_EQ(error_of(ScenarioText{}.text()), "no error");
}

TEST(ReaderErrors, RefuseRulesWithoutASystemAndUnknownSystems) {
  EXPECT_EQ(with_rest("expect: {refused: [vllm-2]}"),
            "x.yaml:5:19: 'refused' is for a scenario that names its 'system'");
  EXPECT_EQ(with_rest("system: {name: vlm}"),
            "x.yaml:5:16: unknown name 'vlm'; did you mean 'vllm'? expected one of: vllm, "
            "vllm-ascend, sglang, cpverify");
  EXPECT_THAT(with_rest("system: {backend: fa3}"), HasSubstr("x.yaml:5:9: "));
  EXPECT_EQ(with_rest("system: {name: vllm, features: [lora, lora]}"),
            "x.yaml:5:39: 'lora' is listed twice");
}

TEST(ReaderErrors, SayWhereYamlSyntaxBreaks) {
  EXPECT_THAT(error_of("model: {cp: 1\ncache: 2\n"), StartsWith("x.yaml:2:6: not YAML: "));
  EXPECT_THAT(error_of("model: [1, 2\n"), StartsWith("x.yaml:2:1: not YAML: "));
  EXPECT_THAT(error_of("model: *nobody\n"), StartsWith("x.yaml:1:8: not YAML: "));
}

TEST(ReaderErrors, RefuseEmptyAndMultipleDocuments) {
  EXPECT_THAT(error_of(""), StartsWith("x.yaml:1:1: the file is empty; expected a scenario"));
  EXPECT_THAT(error_of("# only a remark\n"), StartsWith("x.yaml:1:1: the file is empty"));
  EXPECT_THAT(error_of("~\n"), StartsWith("x.yaml:1:1: the file is empty"));
  EXPECT_EQ(error_of(ScenarioText{}.text() + "---\n" + ScenarioText{}.text()),
            "x.yaml:6:1: the file has a second YAML document; expected one scenario");
}

/// Found by fuzzing: a list of all its documents never ends.
TEST(ReaderErrors, RefuseTextThatTheParserTakesForEndlesslyManyDocuments) {
  EXPECT_THAT(error_of(",aunch: &l\nduldeptl  modulloceql\n"), StartsWith("x.yaml:"));
}

TEST(ReaderErrors, RefuseWhatIsNoMap) {
  EXPECT_EQ(error_of("- 1\n"),
            "x.yaml:1:1: 'scenario': expected a map of keys and values, found a list");
  EXPECT_EQ(error_of("hello\n"),
            "x.yaml:1:1: 'scenario': expected a map of keys and values, found 'hello'");
  EXPECT_EQ(with_topology("topology: 4"),
            "x.yaml:2:11: 'topology': expected a map of keys and values, found '4'");
  // The place of an empty value is its key: the parser's own mark is on what follows.
  EXPECT_EQ(with_topology("topology:"),
            "x.yaml:2:1: 'topology': expected a map of keys and values, found nothing");
}

TEST(ReaderErrors, RefuseWhatIsNotUtf8Text) {
  EXPECT_THAT(error_of("name: a\xff\n"), StartsWith("x.yaml:1:8: byte 0xff is not UTF-8 text"));
  EXPECT_THAT(error_of(std::string{"a: 1\n\0b", 7}), StartsWith("x.yaml:2:1: byte 0x00 is not"));
  EXPECT_THAT(error_of("\x7f"
                       "ELF\x02\x01"),
              StartsWith("x.yaml:1:1: byte 0x7f is not"));
}

TEST(ReaderErrors, NameUnknownKeysTheirNearestAndTheAllowedOnes) {
  EXPECT_EQ(with_topology("topology: {cpp: 2}"),
            "x.yaml:2:12: unknown key 'cpp' in 'topology'; did you mean 'cp'? allowed: cp, tp, "
            "dcp, kv_sharding, kv_interleave");
  EXPECT_EQ(with_topology("topology: {cp: 2, gpus_per_node: 8}"),
            "x.yaml:2:19: unknown key 'gpus_per_node' in 'topology'; allowed: cp, tp, dcp, "
            "kv_sharding, kv_interleave");
  EXPECT_THAT(with_rest("modle: 1"),
              StartsWith("x.yaml:5:1: unknown key 'modle' in 'scenario'; did you mean 'model'? "));
  EXPECT_THAT(with_requests("requests: [{id: a, promt: 8}]"),
              StartsWith("x.yaml:4:20: unknown key 'promt' in 'requests'; did you mean 'prompt'?"));
}

TEST(ReaderErrors, SayToWhichSectionAMisplacedKeyBelongs) {
  EXPECT_THAT(with_rest("block_size: 16"),
              StartsWith("x.yaml:5:1: unknown key 'block_size' in 'scenario'; it is a key of "
                         "'cache'; allowed: name, "));
}

TEST(ReaderErrors, RefuseRepeatedKeys) {
  EXPECT_EQ(with_rest("topology: {cp: 4}"), "x.yaml:5:1: key 'topology' is given twice");
  EXPECT_EQ(with_topology("topology: {cp: 2, cp: 2}"), "x.yaml:2:19: key 'cp' is given twice");
}

TEST(ReaderErrors, RefuseKeysThatAreNotWords) {
  EXPECT_EQ(with_rest("? [a, b]\n: 1"), "x.yaml:5:3: 'key': expected text, found a list");
}

TEST(ReaderErrors, NameMissingKeysAtTheirSection) {
  EXPECT_EQ(with_topology("topology: {tp: 2}"), "x.yaml:2:11: missing key 'cp' in 'topology'");
  EXPECT_EQ(with_topology(""), "x.yaml:1:1: missing key 'topology' in 'scenario'");
  EXPECT_EQ(with_model("model: {num_heads_q: 4, num_heads_kv: 2, dtype: bf16}"),
            "x.yaml:1:8: missing key 'head_dim' in 'model'");
  EXPECT_EQ(with_requests(""), "x.yaml:1:1: missing key 'requests' (or 'trace') in 'scenario'");
  EXPECT_EQ(with_requests("requests: [{prompt: 8}]"),
            "x.yaml:4:12: missing key 'id' in 'requests'");
  EXPECT_EQ(with_requests("requests: [{id: a}]"),
            "x.yaml:4:12: missing key 'prompt' in 'requests'");
}

TEST(ReaderErrors, ShowWhatStandsWhereAWholeNumberBelongs) {
  const auto cp = [](const std::string& value) {
    return with_topology("topology: {cp: " + value + "}");
  };
  EXPECT_EQ(cp("x"), "x.yaml:2:16: 'cp': expected a whole number, found 'x'");
  EXPECT_EQ(cp("2.0"), "x.yaml:2:16: 'cp': expected a whole number, found '2.0'");
  EXPECT_EQ(cp("1e1"), "x.yaml:2:16: 'cp': expected a whole number, found '1e1'");
  EXPECT_EQ(cp("0x2"), "x.yaml:2:16: 'cp': expected a whole number, found '0x2'");
  EXPECT_EQ(cp("02"), "x.yaml:2:16: 'cp': expected a whole number, found '02'");
  EXPECT_EQ(cp("+2"), "x.yaml:2:16: 'cp': expected a whole number, found '+2'");
  EXPECT_EQ(cp("-"), "x.yaml:2:16: 'cp': expected a whole number, found '-'");
  EXPECT_EQ(cp("'2'"), "x.yaml:2:16: 'cp': expected a whole number, found the text '2'");
  EXPECT_EQ(cp("[2]"), "x.yaml:2:16: 'cp': expected a whole number, found a list");
  EXPECT_EQ(cp("{}"), "x.yaml:2:16: 'cp': expected a whole number, found a map");
  EXPECT_EQ(cp("~"), "x.yaml:2:12: 'cp': expected a whole number, found nothing");
  EXPECT_EQ(cp("true"), "x.yaml:2:16: 'cp': expected a whole number, found 'true'");
}

TEST(ReaderErrors, KeepRankCountsWithinTheMachine) {
  EXPECT_EQ(with_topology("topology: {cp: 0}"), "x.yaml:2:16: 'cp' is 0; expected 1 to 64 ranks");
  EXPECT_EQ(with_topology("topology: {cp: -2}"), "x.yaml:2:16: 'cp' is -2; expected 1 to 64 ranks");
  EXPECT_EQ(with_topology("topology: {cp: 65}"), "x.yaml:2:16: 'cp' is 65; expected 1 to 64 ranks");
  EXPECT_THAT(with_topology("topology: {cp: 64, tp: 2}"),
              StartsWith("x.yaml:2:16: cp 64 times tp 2 is 128 ranks; expected at most 64"));
}

TEST(ReaderErrors, DoNotOverflow) {
  // 2^63, 2^64 and 100 digits.
  EXPECT_EQ(with_topology("topology: {cp: 9223372036854775808}"),
            "x.yaml:2:16: 'cp' is 9223372036854775808; expected 1 to 64 ranks");
  EXPECT_EQ(with_cache("cache: {block_size: 18446744073709551617}"),
            "x.yaml:3:21: 'block_size' is 18446744073709551617; expected 1 to 1024 tokens");
  EXPECT_THAT(with_requests("requests: [{id: a, prompt: " + std::string(100, '9') + "}]"),
              StartsWith("x.yaml:4:28: 'prompt' is 9999"));
  EXPECT_EQ(with_rest("data: {seed: 18446744073709551616}"),
            "x.yaml:5:14: 'seed' is 18446744073709551616; expected 0 to 2^64 - 1");
  EXPECT_EQ(with_rest("data: {seed: -1}"), "x.yaml:5:14: 'seed' is -1; expected 0 to 2^64 - 1");
}

TEST(ReaderErrors, RefuseModelsThatCannotExist) {
  EXPECT_EQ(with_model("model: {num_heads_q: 7, num_heads_kv: 2, head_dim: 64, dtype: bf16}"),
            "x.yaml:1:22: 'num_heads_q' is 7, which is not a multiple of num_heads_kv 2; every KV "
            "head serves the same number of query heads");
  EXPECT_THAT(with_model("model: {num_heads_q: 2, num_heads_kv: 4, head_dim: 64, dtype: bf16}"),
              StartsWith("x.yaml:1:22: 'num_heads_q' is 2, which is not a multiple of"));
  EXPECT_EQ(with_model("model: {num_heads_q: 0, num_heads_kv: 2, head_dim: 64, dtype: bf16}"),
            "x.yaml:1:22: 'num_heads_q' is 0; expected 1 to 1024");
  EXPECT_EQ(with_model("model: {num_heads_q: 4, num_heads_kv: 2, head_dim: 80, dtype: bf16}"),
            "x.yaml:1:52: 'head_dim' is 80; expected 32, 64 or 128");
  EXPECT_EQ(with_model("model: {num_heads_q: 4, num_heads_kv: 2, head_dim: 64, dtype: bf61}"),
            "x.yaml:1:63: unknown dtype 'bf61'; did you mean 'bf16'? expected one of: f32, f16, "
            "bf16");
}

TEST(ReaderErrors, RefuseAnAttentionKindThatContradictsTheHeads) {
  const auto attention = [](const std::string& kind, const std::string& kv) {
    return with_model("model: {attention: " + kind + ", num_heads_q: 4, num_heads_kv: " + kv +
                      ", head_dim: 64, dtype: bf16}");
  };
  EXPECT_EQ(attention("mha", "2"),
            "x.yaml:1:20: 'attention' is mha, but 4 query heads on 2 KV heads are gqa");
  EXPECT_EQ(attention("gqa", "1"),
            "x.yaml:1:20: 'attention' is gqa, but 4 query heads on 1 KV heads are mqa");
  EXPECT_EQ(attention("mqa", "4"),
            "x.yaml:1:20: 'attention' is mqa, but 4 query heads on 4 KV heads are mha");
  EXPECT_THAT(attention("mla", "2"), StartsWith("x.yaml:1:20: unknown attention 'mla'; did you"));
}

TEST(ReaderErrors, KeepTheSoftmaxScaleUsable) {
  const auto scale = [](const std::string& value) {
    return with_model("model: {softmax_scale: " + value +
                      ", num_heads_q: 4, num_heads_kv: 2, head_dim: 64, dtype: bf16}");
  };
  EXPECT_EQ(scale("x"), "x.yaml:1:24: 'softmax_scale': expected a number, found 'x'");
  EXPECT_EQ(scale("0.1x"), "x.yaml:1:24: 'softmax_scale': expected a number, found '0.1x'");
  EXPECT_THAT(scale("0"), StartsWith("x.yaml:1:24: 'softmax_scale' is 0; expected more than"));
  EXPECT_THAT(scale("-0.1"), HasSubstr("'softmax_scale' is -0.1; expected"));
  EXPECT_THAT(scale("nan"), HasSubstr("'softmax_scale' is nan; expected"));
  EXPECT_THAT(scale("inf"), HasSubstr("'softmax_scale' is inf; expected"));
  EXPECT_THAT(scale("1e99"), HasSubstr("'softmax_scale' is 1e99; expected"));
}

TEST(ReaderErrors, RefuseTensorParallelSizesThatSplitHeads) {
  EXPECT_EQ(with_topology("topology: {cp: 2, tp: 3}"),
            "x.yaml:2:23: 'tp' is 3, which does not divide num_heads_q 4");
  // 12 query heads on 6 KV heads and tp 4: a rank has 3 query heads, but 1.5 KV heads.
  ScenarioText text{.model = "model: {num_heads_q: 12, num_heads_kv: 6, head_dim: 64, dtype: bf16}",
                    .topology = "topology: {cp: 2, tp: 4}"};
  EXPECT_EQ(error_of(text.text()),
            "x.yaml:2:23: 'tp' is 4 with num_heads_kv 6; expected one to divide the other");
}

TEST(ReaderErrors, RefuseTensorCoresForF32) {
  ScenarioText text{.model = "model: {num_heads_q: 4, num_heads_kv: 2, head_dim: 64, dtype: f32}",
                    .rest = "attention_kernel: mma"};
  EXPECT_THAT(error_of(text.text()),
              StartsWith("x.yaml:5:19: 'attention_kernel' is mma, which has no f32; expected"));
  EXPECT_EQ(with_rest("attention_kernel: automatic"),
            "x.yaml:5:19: unknown attention_kernel 'automatic'; expected one of: auto, fma, mma, "
            "hopper");
}

TEST(ReaderErrors, RefuseTypesAndHeadsThatTheKernelOfHopperLacks) {
  ScenarioText text{.model = "model: {num_heads_q: 4, num_heads_kv: 2, head_dim: 64, dtype: f16}",
                    .rest = "attention_kernel: hopper"};
  EXPECT_EQ(error_of(text.text()),
            "x.yaml:5:19: 'attention_kernel' is hopper, which has no f16; expected dtype bf16");
  text.model = "model: {num_heads_q: 4, num_heads_kv: 2, head_dim: 32, dtype: bf16}";
  EXPECT_EQ(error_of(text.text()),
            "x.yaml:5:19: 'attention_kernel' is hopper, which has no head_dim 32; expected 64 or "
            "128");
  text.model = "model: {num_heads_q: 4, num_heads_kv: 2, head_dim: 128, dtype: bf16}";
  EXPECT_EQ(parse_scenario(text.text(), "x.yaml").attention_kernel, AttentionKernel::hopper);
}

TEST(ReaderErrors, KeepCacheSizesPossible) {
  EXPECT_EQ(with_cache("cache: {block_size: 0}"),
            "x.yaml:3:21: 'block_size' is 0; expected 1 to 1024 tokens");
  EXPECT_EQ(with_cache("cache: {block_size: 1025}"),
            "x.yaml:3:21: 'block_size' is 1025; expected 1 to 1024 tokens");
  EXPECT_EQ(with_cache("cache: {block_size: 16, num_blocks: 1}"),
            "x.yaml:3:37: 'num_blocks' is 1; expected 2 to 262144, the null block included");
  EXPECT_EQ(with_cache("cache: {block_size: 1024, num_blocks: 4097}"),
            "x.yaml:3:39: 'num_blocks' is 4097; expected 2 to 4096, the null block included");
}

TEST(ReaderErrors, LimitTheTokensOfAScenarioAndSayWhy) {
  // 2^40.
  EXPECT_EQ(with_requests("requests: [{id: a, prompt: 1099511627776}]"),
            "x.yaml:4:28: 'prompt' is 1099511627776; expected 0 to 1048576 tokens: every one is "
            "simulated and checked, so a scenario has at most 2^20 in all");
  EXPECT_THAT(with_requests("requests: [{id: a, prompt: -5}]"),
              StartsWith("x.yaml:4:28: 'prompt' is -5; expected 0 to 1048576 tokens"));
  EXPECT_THAT(with_requests("requests: [{id: a, prompt: 1048576}, {id: b, prompt: 1}]"),
              StartsWith("x.yaml:4:38: the requests up to 'b' have 1048577 tokens; expected at "
                         "most 1048576"));
  // 2^20 tokens of (128 + 2 * 64) * 64 values.
  ScenarioText text{
      .model = "model: {num_heads_q: 128, num_heads_kv: 64, head_dim: 64, dtype: bf16}",
      .requests = "requests: [{id: a, prompt: 1048576}]"};
  EXPECT_THAT(error_of(text.text()),
              StartsWith("x.yaml:4:12: the requests up to 'a' have 17179869184 values of q, k"));
}

TEST(ReaderErrors, RefuseRequestListsThatSayNothing) {
  EXPECT_EQ(with_requests("requests: []"),
            "x.yaml:4:11: 'requests' is an empty list; expected one entry or more");
  EXPECT_EQ(with_requests("requests: {id: a}"),
            "x.yaml:4:11: 'requests': expected a list, found a map");
  EXPECT_EQ(with_requests("requests: [a]"),
            "x.yaml:4:12: 'requests': expected a map of keys and values, found 'a'");
  EXPECT_THAT(with_requests("requests: [{id: a, prompt: 0}]"),
              StartsWith("x.yaml:4:28: 'prompt' is 0; expected at least 1 token, or a cached"));
  EXPECT_THAT(with_requests("requests: [{id: a, cached_prefix: 4, prompt: 0}]"),
              StartsWith("x.yaml:4:46: 'prompt' and 'decode' are 0; expected at least 1 token"));
}

TEST(ReaderErrors, RefuseIdsThatAreTakenOrCannotBePrinted) {
  EXPECT_EQ(with_requests("requests: [{id: a, prompt: 8}, {id: a, prompt: 8}]"),
            "x.yaml:4:37: request id 'a' is used twice");
  EXPECT_EQ(with_requests("requests: [{id: 'a b', prompt: 8}]"),
            "x.yaml:4:17: 'id' is 'a b'; expected at most 64 letters, digits, '_', '-' and '.'");
  EXPECT_EQ(with_requests("requests: [{id: '', prompt: 8}]"), "x.yaml:4:17: 'id' is empty");
  EXPECT_EQ(with_requests("requests: [{id: [], prompt: 8}]"),
            "x.yaml:4:17: 'id': expected text, found a list");
}

TEST(ReaderErrors, RefuseRequestListsThatAreTooLong) {
  std::string list = "requests: [";
  for (int i = 0; i < 1025; ++i) list += fmt::format("{{id: r{}, prompt: 1}}, ", i);
  EXPECT_EQ(with_requests(list + "]"),
            "x.yaml:4:11: 'requests' has 1025 entries; expected at most 1024");
}

std::string with_share(const std::string& share, const std::string& prompt = "20") {
  return with_requests("requests: [{id: alpha, prompt: 8, decode: 2}, {id: beta, prompt: " +
                       prompt + ", shared_prefix: " + share + "}]");
}

TEST(ReaderErrors, RefuseSharingWithRequestsThatAreNotBefore) {
  EXPECT_EQ(with_share("{request: alpah, tokens: 4}"),
            "x.yaml:4:95: shared_prefix names 'alpah', which is not a request listed before "
            "'beta'; did you mean 'alpha'?");
  EXPECT_EQ(with_share("{request: beta, tokens: 4}"),
            "x.yaml:4:95: request 'beta' shares a prefix with itself");
  EXPECT_EQ(with_requests("requests: [{id: a, prompt: 8, shared_prefix: {request: b, tokens: 4}}, "
                          "{id: b, prompt: 8}]"),
            "x.yaml:4:56: shared_prefix names 'b', which is not a request listed before 'a'");
}

TEST(ReaderErrors, RefuseSharesThatAreLongerThanEitherRequest) {
  EXPECT_EQ(with_share("{request: alpha, tokens: 9}", "8"),
            "x.yaml:4:109: 'tokens' is 9, more than the prompt of 'beta', 8");
  EXPECT_EQ(with_share("{request: alpha, tokens: 11}"),
            "x.yaml:4:110: 'tokens' is 11, more than all tokens of 'alpha', 10");
  EXPECT_THAT(with_share("{request: alpha, tokens: 0}"),
              StartsWith("x.yaml:4:110: 'tokens' is 0; expected 1 to 1048576 tokens"));
  EXPECT_EQ(with_share("{request: alpha, tokens: 10}"), "no error");
}

TEST(ReaderErrors, RefuseAPrefixThatIsBothCachedAndShared) {
  EXPECT_THAT(with_requests("requests: [{id: a, prompt: 8}, {id: b, cached_prefix: 4, prompt: 8, "
                            "shared_prefix: {request: a, tokens: 4}}]"),
              StartsWith("x.yaml:4:84: a request has either cached_prefix or shared_prefix"));
}

TEST(ReaderErrors, RefuseRequestsBesideATrace) {
  EXPECT_THAT(with_rest("trace: {file: t.jsonl, scale: 1/2}"),
              StartsWith("x.yaml:5:8: a scenario has either 'requests' or 'trace'"));
}

TEST(ReaderErrors, CheckTheSmallSections) {
  EXPECT_EQ(with_rest("scheduler: {max_batched_tokens: 0}"),
            "x.yaml:5:33: 'max_batched_tokens' is 0; expected 1 to 1048576 tokens; leave the key "
            "out for no limit");
  EXPECT_EQ(with_rest("padding: {token_multiple: 0}"),
            "x.yaml:5:27: 'token_multiple' is 0; expected 1 to 1024 rows");
  EXPECT_THAT(
      with_rest("strategies: [single, zigzga]"),
      StartsWith("x.yaml:5:22: unknown strategies 'zigzga'; did you mean 'zigzag'? expected "
                 "one of: single, zigzag, "));
  EXPECT_EQ(with_rest("strategies: [single, single]"), "x.yaml:5:22: 'single' is listed twice");
  EXPECT_EQ(with_rest("strategies: []"),
            "x.yaml:5:13: 'strategies' is an empty list; expected one entry or more");
  EXPECT_EQ(with_rest("data: {modes: [random, random]}"), "x.yaml:5:24: 'random' is listed twice");
  EXPECT_EQ(with_rest("data: {modes: random}"),
            "x.yaml:5:15: 'modes': expected a list, found 'random'");
  EXPECT_THAT(with_rest("checks: [metadta]"),
              StartsWith("x.yaml:5:10: unknown checks 'metadta'; did you mean 'metadata'?"));
}

TEST(ReaderErrors, CheckTheSchedule) {
  EXPECT_EQ(with_rest("schedule: {policy: revrse}"),
            "x.yaml:5:20: unknown policy 'revrse'; did you mean 'reverse'? expected one of: "
            "round_robin, reverse, run_to_block, random, pct");
  EXPECT_THAT(with_rest("schedule: {seed: 3}"), HasSubstr("'policy'"));
  EXPECT_EQ(with_rest("schedule: {policy: reverse, seed: 3}"),
            "x.yaml:5:35: 'seed' is for policy random or pct; the others have no choice to make");
  EXPECT_EQ(with_rest("schedule: {policy: random, depth: 3}"),
            "x.yaml:5:35: 'depth' is for policy pct");
  EXPECT_THAT(with_rest("schedule: {policy: pct, depth: 0}"),
              StartsWith("x.yaml:5:32: 'depth' is 0; expected 1 to 64"));
  EXPECT_EQ(with_rest("schedule: {policy: pct, seed: 18446744073709551615, depth: 64}"),
            "no error");
  EXPECT_EQ(with_rest("schedule: {policy: pct}\nchecks: [memcheck, racecheck]"),
            "x.yaml:6:9: 'checks' has racecheck, which follows one CTA at a time, and 'schedule' "
            "pct keeps several; leave racecheck out, or choose policy round_robin, reverse or "
            "run_to_block");
  EXPECT_EQ(with_rest("checks: [racecheck]\nschedule: {policy: run_to_block}"), "no error");
  EXPECT_EQ(with_rest("schedule: {policy: reverse, threads: independant}"),
            "x.yaml:5:38: unknown threads 'independant'; did you mean 'independent'? expected one "
            "of: converged, independent");
}

TEST(ReaderErrors, CheckHowSumsAreTaken) {
  EXPECT_THAT(
      with_rest("mma_accumulation: pairwse"),
      StartsWith("x.yaml:5:19: unknown mma_accumulation 'pairwse'; did you mean 'pairwise'?"));
  EXPECT_THAT(with_rest("reduction: {seed: 3}"), HasSubstr("'order'"));
  EXPECT_EQ(with_rest("reduction: {order: tree, seed: 3}"),
            "x.yaml:5:32: 'seed' is for order adversarial; the others have no choice to make");
  EXPECT_EQ(with_rest("reduction: {order: tree, chunk: 3}"),
            "x.yaml:5:33: 'ring', 'channels' and 'chunk' are for order ring");
  EXPECT_THAT(with_rest("reduction: {order: ring, ring: [0, 0]}"),
              HasSubstr("a ring lists every rank from 0 on once"));
  EXPECT_THAT(with_rest("reduction: {order: ring, ring: [1, 2]}"),
              HasSubstr("a ring lists every rank from 0 on once"));
  EXPECT_THAT(with_rest("reduction: {order: ring, channels: 0}"),
              StartsWith("x.yaml:5:36: 'channels' is 0; expected 1 to 64"));
  EXPECT_EQ(with_rest("reduction: {order: ring, ring: [1, 0], channels: 64, chunk: 1}"),
            "no error");
  EXPECT_EQ(with_rest("reduction: {order: adversarial, seed: 18446744073709551615}"), "no error");
}

TEST(ReaderErrors, CheckInjections) {
  EXPECT_EQ(with_rest("inject: {rank: 1}"), "x.yaml:5:9: missing key 'defect' in 'inject'");
  EXPECT_EQ(with_rest("inject: {defect: x, rank: one}"),
            "x.yaml:5:27: 'rank': expected a whole number, found 'one'");
  EXPECT_THAT(with_rest("inject: {defect: x, rank: 2147483648}"),
              StartsWith("x.yaml:5:27: 'rank' is 2147483648; expected -2147483648 to 2147483647"));
  EXPECT_THAT(with_rest("inject: {defect: x, 'a b': 1}"),
              StartsWith("x.yaml:5:21: unknown key 'a b' in 'inject'"));
}

TEST(ReaderErrors, CheckExpectedFindings) {
  EXPECT_EQ(with_rest("expect: {findings: []}"),
            "x.yaml:5:20: 'findings' is an empty list; expected one entry or more");
  EXPECT_THAT(with_rest("expect: {findings: [{}]}"),
              StartsWith("x.yaml:5:21: a finding without fields matches anything"));
  EXPECT_THAT(
      with_rest("expect: {findings: [{kernal: x}]}"),
      StartsWith("x.yaml:5:22: unknown key 'kernal' in 'findings'; did you mean 'kernel'?"));
  EXPECT_THAT(with_rest("expect: {findings: [{check: outputs}]}"),
              StartsWith("x.yaml:5:29: unknown check 'outputs'; did you mean 'output'?"));
  EXPECT_EQ(with_rest("expect: {findings: [{rank: 2}]}"),
            "x.yaml:5:28: 'rank' is 2; expected 0 to 1, the ranks of 'topology'");
  EXPECT_EQ(with_rest("expect: {findings: [{head: 4}]}"),
            "x.yaml:5:28: 'head' is 4; expected 0 to 3");
  EXPECT_EQ(with_rest("expect: {findings: [{request: b}]}"),
            "x.yaml:5:31: unknown request 'b'; expected one of: a");
  EXPECT_THAT(with_rest("expect: {findings: [{mode: randm}]}"),
              StartsWith("x.yaml:5:28: unknown mode 'randm'; did you mean 'random'?"));
  EXPECT_EQ(with_rest("expect: {findings: [{step: first}]}"),
            "x.yaml:5:28: 'step': expected a whole number, found 'first'");
}

TEST(ReaderErrors, DoNotRepeatLongOrUnprintableText) {
  const std::string error = with_topology("topology: {cp: \"" + std::string(500, 'z') + "\\x01\"}");
  EXPECT_THAT(error, HasSubstr("found the text 'zzz"));
  EXPECT_LT(error.size(), 150U);
}

TEST(ReaderErrors, SurviveDeepAndRecursiveYaml) {
  EXPECT_THAT(error_of(std::string(20'000, '[')), StartsWith("x.yaml:"));
  EXPECT_THAT(with_requests("requests: &r [*r]"),
              HasSubstr("'requests': expected a map of keys and values, found a list"));
}

}  // namespace
}  // namespace cpverify
