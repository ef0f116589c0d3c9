package devstack

import (
	"fmt"
	"log/slog"
	"runtime"
	"testing"
)

func TestOutput_KeepsTheFirstAndLastLinesOfABusyServer(t *testing.T) {
	o := &output{log: slog.New(slog.DiscardHandler)}
	fmt.Fprintln(o, "mosquitto version 2 running")
	for n := range 10 * keptLines {
		fmt.Fprintln(o, "New connection", n)
	}
	if !o.contains(" running") {
		t.Error("the first line is lost")
	}
	if !o.contains(fmt.Sprint("connection ", 10*keptLines-1)) {
		t.Error("the last line is lost")
	}
}

func TestRunning_CountsThisThread(t *testing.T) {
	if n := running(); runtime.GOOS == "linux" && n < 1 {
		t.Errorf("%d threads run, want at least this one", n)
	}
}
