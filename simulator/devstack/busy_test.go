package devstack

import (
	"fmt"
	"log/slog"
	"testing"
)

func TestABusyServersWordThatItRunsIsNotLost(t *testing.T) {
	o := &output{log: slog.New(slog.DiscardHandler)}
	fmt.Fprintln(o, "mosquitto version 2 running")
	for n := range 10 * keptLines {
		fmt.Fprintln(o, "New connection", n)
	}
	if !o.contains(" running") {
		t.Error("its first words are forgotten")
	}
	if !o.contains(fmt.Sprint("connection ", 10*keptLines-1)) {
		t.Error("its last words are forgotten")
	}
}
