#include "fucina/diag/log.h"

#include <string>

#include "fucina/diag/check.h"
#include "fucina/diag/status_macros.h"
#include "gtest/gtest.h"

namespace fucina {
namespace {

std::string Logged(LogLevel level) {
  SetLogLevel(level);
  ::testing::internal::CaptureStderr();
  FUCINA_LOG(INFO) << "one " << 1;
  FUCINA_LOG(WARNING) << "two";
  FUCINA_LOG(ERROR) << "three";
  SetLogLevel(LogLevel::kWarning);
  return ::testing::internal::GetCapturedStderr();
}

TEST(Log, LinesBelowTheLevelAreDropped) {
  EXPECT_EQ(Logged(LogLevel::kInfo),
            "fucina: one 1\nfucina: warning: two\nfucina: error: three\n");
  EXPECT_EQ(Logged(LogLevel::kWarning),
            "fucina: warning: two\nfucina: error: three\n");
  EXPECT_EQ(Logged(LogLevel::kError), "fucina: error: three\n");
  EXPECT_EQ(Logged(LogLevel::kSilent), "");
}

TEST(Log, IsOneStatementInAnIf) {
  SetLogLevel(LogLevel::kSilent);
  bool other = false;
  if (false)
    FUCINA_LOG(ERROR) << "no";
  else
    other = true;
  SetLogLevel(LogLevel::kWarning);
  EXPECT_TRUE(other);
}

TEST(CheckDeathTest, StopsWithPlaceConditionAndValues) {
  const int a = 3;
  EXPECT_DEATH(FUCINA_CHECK(a == 4) << "seen " << a,
               "log_test.cc:[0-9]+: check failed: a == 4 seen 3");
  EXPECT_DEATH(FUCINA_CHECK_EQ(a, 4), "3 against 4");
  FUCINA_CHECK_LT(a, 4) << "does not stop";
}

absl::StatusOr<int> Half(int value) {
  if (value % 2 != 0) return absl::InvalidArgumentError("odd");
  return value / 2;
}

absl::Status Quarter(int value, int& out) {
  FUCINA_ASSIGN_OR_RETURN(const int half, Half(value));
  FUCINA_ASSIGN_OR_RETURN(out, Half(half));
  FUCINA_RETURN_IF_ERROR(absl::OkStatus());
  return absl::OkStatus();
}

TEST(StatusMacros, ReturnTheFirstError) {
  int out = 0;
  EXPECT_TRUE(Quarter(12, out).ok());
  EXPECT_EQ(out, 3);
  EXPECT_EQ(Quarter(6, out).message(), "odd");
}

}  // namespace
}  // namespace fucina
