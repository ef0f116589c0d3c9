package charging_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	"motorpool/internal/require"
)

func TestMain(m *testing.M) {
	if require.Race { // seven times slower; make test runs all without it, too
		_ = flag.Set("rapid.checks", "20")
	}
	goleak.VerifyTestMain(m)
}
