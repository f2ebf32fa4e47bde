// Where values come from: several files, references, URLs, and what is said about it.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <thread>

#include "aitraining/core/files.h"
#include "config_test_support.h"

namespace aitraining::config {
namespace {

constexpr const char* kHead =
    "task: llm-sft\nbackend: local\nbase_model: ./model\nproject_name: demo\ndata:\n  path: "
    "./data\n";

class Sources : public ConfigTest {
 protected:
  std::string origin(const ResolvedConfig& config, const std::string& field) const {
    const std::string text = config.origin(field).text(), folder = folder_.string() + "/";
    const size_t at = text.find(folder);
    return at == std::string::npos ? text : std::string(text).erase(at, folder.size());
  }
};

TEST_F(Sources, EachValueSaysWhereItStood) {
  setenv("HF_TOKEN", "hf_ENVIRONMENT", 1);
  setenv("AITRAINING_TEST_RATE", "0.25", 1);
  const std::string file =
      write(std::string(kHead) + "params:\n  epochs: 4\n  lr: ${AITRAINING_TEST_RATE}\n  seed: 1\n",
            "a.yaml");
  const ResolvedConfig config = resolved({"--config", file, "--seed", "2"});
  EXPECT_EQ(origin(config, "epochs"), "a.yaml:8");
  EXPECT_EQ(origin(config, "trainer"), "a.yaml:1");
  EXPECT_EQ(origin(config, "model"), "a.yaml:3");
  EXPECT_EQ(origin(config, "data_path"), "a.yaml:6");
  EXPECT_EQ(origin(config, "seed"), "flag");
  EXPECT_EQ(origin(config, "lora_r"), "default");
  EXPECT_EQ(origin(config, "token"), "environment HF_TOKEN");
  EXPECT_EQ(origin(config, "lr"), "environment AITRAINING_TEST_RATE (a.yaml:9)");
  EXPECT_EQ(config.origins.at("seed").place, "--seed");
  EXPECT_HAS(describe(config), "a.yaml:8)");
  EXPECT_HAS(describe(config), "token = *** (environment HF_TOKEN)");
  EXPECT_EQ(config.params.lr, 0.25);
  unsetenv("HF_TOKEN");
  unsetenv("AITRAINING_TEST_RATE");
}

TEST_F(Sources, SeveralFilesAreAppliedLeftToRightAndFlagsOverAll) {
  const std::string first =
      write(std::string(kHead) + "params:\n  lr: 1e-3\n  epochs: 2\n  batch_size: 3\n", "a.yaml");
  const std::string second =
      write("task: llm-generic\nparams:\n  lr: 1e-4\n  epochs: 5\n", "b.yaml");
  const ResolvedConfig config =
      resolved({"--config", first, "--config=" + second, "--epochs", "7"});
  EXPECT_EQ(config.params.batch_size, 3);
  EXPECT_EQ(config.params.lr, 1e-4);
  EXPECT_EQ(config.params.epochs, 7);
  EXPECT_EQ(config.params.trainer, "default");
  EXPECT_EQ(origin(config, "batch_size"), "a.yaml:10");
  EXPECT_EQ(origin(config, "lr"), "b.yaml:3");
  EXPECT_EQ(resolved({"--config", second, "--config", first}).params.lr, 1e-3);
  EXPECT_HAS(refusal({"--config", second}), "b.yaml:1:1: Backend is required");
}

TEST_F(Sources, ProblemsOfAllFilesAndFlagsAreListed) {
  const std::string first =
      write(std::string(kHead) + "params:\n  lr: fast\n  epochz: 2\n", "a.yaml");
  const std::string second = write("params: [\n", "b.yaml");
  const std::string message = refusal({"--config", first, "--config", second, "--config",
                                       (folder_ / "c.yaml").string(), "--bach-size", "2"});
  EXPECT_HAS(message, "a.yaml:8:7: params.lr: 'fast' is not a number");
  EXPECT_HAS(message, "a.yaml:9:3: unknown key 'epochz'");
  EXPECT_HAS(message, "b.yaml:2:1: not readable as YAML");
  EXPECT_HAS(message, "c.yaml: No such file");
  EXPECT_HAS(message, "--bach-size; did you mean --batch-size?");
  EXPECT_HAS(message, "5 problems:");
  EXPECT_HAS(refusal({"--config"}), "--config needs a file or URL");
  EXPECT_FALSE(has(refusal({"--config", second}), "must be specified"));
}

TEST_F(Sources, ByteOrderMarkAndLineEndsOfWindows) {
  std::string text = "\xEF\xBB\xBF" + std::string(kHead) + "params:\n  lr: 1e-3\n  epochz: 1\n";
  EXPECT_HAS(refusal({"--config", write(text)}), "run.yaml:9:3: unknown key 'epochz'");
  text.erase(text.find("  epochz"));
  EXPECT_EQ(params_of({"--config", write(text)}).lr, 1e-3);
  std::string windows;
  for (char c : text) windows += c == '\n' ? std::string("\r\n") : std::string(1, c);
  const ResolvedConfig config = resolved({"--config", write(windows)});
  EXPECT_EQ(config.params.lr, 1e-3);
  EXPECT_EQ(config.params.data_path, "./data");
  EXPECT_EQ(origin(config, "lr"), "run.yaml:8");
}

TEST_F(Sources, ReferencesStandAloneOrInside) {
  setenv("AITRAINING_TEST_PLACE", "/somewhere", 1);
  const auto with = [&](const std::string& params) { return write_params(params); };
  EXPECT_EQ(
      params_of({"--config", with("  text_column: ${AITRAINING_TEST_PLACE}/x\n")}).text_column,
      "/somewhere/x");
  EXPECT_EQ(params_of({"--config", with("  text_column: \"a${not a name}b${\"\n")}).text_column,
            "a${not a name}b${");
  EXPECT_HAS(
      refusal({"--config", with("  epochs: ${AITRAINING_TEST_PLACE}\n")}),
      "run.yaml:11:11: params.epochs: the value of AITRAINING_TEST_PLACE is not a whole number");
  unsetenv("AITRAINING_TEST_PLACE");
  EXPECT_HAS(
      refusal({"--config", with("  text_column: x/${AITRAINING_TEST_PLACE}\n")}),
      "run.yaml:11:16: params.text_column: the environment variable AITRAINING_TEST_PLACE is "
      "not set");
}

TEST_F(Sources, SecretsStayOutOfWhatIsWritten) {
  setenv("HF_TOKEN", "hf_ENVIRONMENT", 1);
  const std::string message =
      refusal({"--config", write_params("  text_column: ${HF_TOKEN}\n  epochs: ${HF_TOKEN}\n")});
  EXPECT_HAS(message, "run.yaml:11:16: params.text_column: HF_TOKEN holds a secret");
  EXPECT_FALSE(has(message, "hf_ENV"));
  EXPECT_EQ(params_of({"--config", write_params("  token: ${HF_TOKEN}\n")}).token,
            "hf_ENVIRONMENT");
  unsetenv("HF_TOKEN");
  for (const std::string& file :
       {write_params("  token: [hf_LISTED]\n"), write_params("  tokne: hf_LISTED\n"),
        write_params("  token: hf_LISTED\n  token: hf_LISTED\n"),
        write_params("  token: hf_LISTED\n  wandb_token: hf_LISTED\n  lr: x\n")}) {
    EXPECT_FALSE(has(refusal({"--config", file}), "hf_LISTED"));
  }
  EXPECT_FALSE(has(refusal(llm({"--token", "hf_A", "hf_STRAY"})), "hf_STRAY"));
  const ResolvedConfig config = resolved({"--config", write_params("  token: hf_FILE\n")});
  EXPECT_FALSE(has(describe(config), "hf_FILE"));
  EXPECT_FALSE(has(to_json(config.params).dump(), "hf_FILE"));
}

TEST_F(Sources, TheDocumentedFilesAreAccepted) {
  setenv("HF_TOKEN", "hf_ENVIRONMENT", 1);
  setenv("HF_USERNAME", "somebody", 1);
  for (const char* name : {"docs/configuration.md", "README.md"}) {
    const std::string text = read_file(std::filesystem::path(AITRAINING_SOURCE_DIR) / name);
    const size_t begin = text.find("```yaml\n");
    ASSERT_NE(begin, std::string::npos) << name;
    const std::string yaml = text.substr(begin + 8, text.find("```", begin + 8) - begin - 8);
    EXPECT_EQ(refusal({"--config", write(yaml)}), "accepted") << name;
  }
  unsetenv("HF_TOKEN");
  unsetenv("HF_USERNAME");
}

// Answers one request on the loopback interface.
class OneAnswer {
 public:
  explicit OneAnswer(const std::string& answer) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const plain = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(socket_, plain, size), 0);
    EXPECT_EQ(::listen(socket_, 1), 0);
    EXPECT_EQ(::getsockname(socket_, plain, &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, answer] { serve(answer); });
  }
  ~OneAnswer() {
    thread_.join();
    ::close(socket_);
  }
  std::string url(const std::string& user = "", const std::string& rest = "/run.yaml") const {
    return "http://" + user + "127.0.0.1:" + std::to_string(port_) + rest;
  }
  const std::string& request() const { return request_; }

 private:
  void serve(const std::string& answer) {
    const int connection = ::accept(socket_, nullptr, nullptr);
    char buffer[4096];
    while (!has(request_, "\r\n\r\n")) {
      const ssize_t got = ::read(connection, buffer, sizeof(buffer));
      if (got <= 0) break;
      request_.append(buffer, static_cast<size_t>(got));
    }
    EXPECT_EQ(::write(connection, answer.data(), answer.size()),
              static_cast<ssize_t>(answer.size()));
    ::close(connection);
  }
  int socket_;
  uint16_t port_ = 0;
  std::string request_;
  std::thread thread_;
};

std::string http(const std::string& status, const std::string& body) {
  return "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\nConnection: close\r\n\r\n" + body;
}

class Urls : public Sources {
 protected:
  void SetUp() override {
    Sources::SetUp();
    setenv("no_proxy", "127.0.0.1", 1);
    if (std::system("curl --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "curl is not there";
  }
};

TEST_F(Urls, AFileBehindAUrlIsRead) {
  OneAnswer server(http("200 OK", std::string(kHead) + "params:\n  lr: 1e-3\n"));
  const ResolvedConfig config = resolved(
      {"--config", server.url("user:hf_PASSWORD@", "/run.yaml?token=hf_QUERY"), "--epochs", "2"});
  EXPECT_EQ(config.params.lr, 1e-3);
  EXPECT_EQ(config.origin("lr").text(), server.url() + ":8");
  EXPECT_FALSE(has(describe(config), "hf_"));
}

TEST_F(Urls, ProblemsNameTheUrlWithoutItsSecrets) {
  OneAnswer server(http("200 OK", std::string(kHead) + "params:\n  lr: fast\n"));
  const std::string message =
      refusal({"--config", server.url("user:hf_PASSWORD@", "/run.yaml?token=hf_QUERY")});
  EXPECT_HAS(message, server.url() + ":8:7: params.lr: 'fast' is not a number");
  EXPECT_FALSE(has(message, "hf_"));
}

TEST_F(Urls, WhatCannotBeRetrievedIsSaid) {
  std::string gone;
  {
    OneAnswer server(http("404 Not Found", "nothing"));
    gone = server.url();
    const std::string message = refusal({"--config", gone});
    EXPECT_HAS(message, gone + ": Failed to retrieve YAML file.");
    EXPECT_HAS(message, "404");
  }
  EXPECT_HAS(refusal({"--config", gone}), "Failed to retrieve YAML file.");
  EXPECT_HAS(refusal({"--config", "http://127.0.0.1:1/a b"}), "no URL");
  EXPECT_HAS(refusal({"--config", "http://u:hf_SECRET@[bad/x"}), "Failed to retrieve YAML file.");
  EXPECT_FALSE(has(refusal({"--config", "http://u:hf_SECRET@[bad/x"}), "hf_SECRET"));
}

TEST_F(Urls, WithoutCurlTheMessageSaysWhatToInstall) {
  const std::string path = std::getenv("PATH");
  setenv("PATH", folder_.c_str(), 1);
  EXPECT_HAS(refusal({"--config", "http://127.0.0.1:1/run.yaml"}), "install it");
  setenv("PATH", path.c_str(), 1);
}

}  // namespace
}  // namespace aitraining::config
