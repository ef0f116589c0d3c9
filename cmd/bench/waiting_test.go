package main

import (
	"strings"
	"testing"
	"time"
)

func TestNoVehicleAnswersBeforeTheLastIsAsked(t *testing.T) {
	for _, c := range []struct {
		network, ramp, hold, most time.Duration
	}{
		{5 * time.Second, 16 * time.Second, 16 * time.Second, 16 * time.Second},
		{time.Second, 1500 * time.Millisecond, 3100 * time.Millisecond, 22400 * time.Millisecond},
		{10 * time.Second, time.Second, 0, 8 * time.Second},
	} {
		w := waiting{Network: c.network, Ramp: c.ramp}
		if w.hold() != c.hold || w.rampMost() != c.most {
			t.Errorf("%v: hold %v, ramp at most %v", c.network, w.hold(), w.rampMost())
		}
	}
}

func TestACrowdThatCouldNotAnswerIsRefused(t *testing.T) {
	for _, c := range []struct {
		network, ramp time.Duration
		says          string
	}{
		{0, time.Second, "--network 0s"},
		{-time.Second, time.Second, "--network -1s"},
		{16 * time.Second, time.Second, "--network 16s"},
		{5 * time.Second, 17 * time.Second, "--ramp 17s: at most 16s"},
	} {
		w := waiting{Vehicles: 1, Network: c.network, Ramp: c.ramp, Rounds: 1}
		if err := w.measure(t.Context(), &waitingResult{}); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, %v: %v", c.network, c.ramp, err)
		}
	}
}
