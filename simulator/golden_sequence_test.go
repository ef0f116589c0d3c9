package simulator

import (
	"cmp"
	"path/filepath"
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/telematics"
	"motorpool/telematics/signing"
)

// These are the vectors of telematics/testdata/wire/README.md that a unit executes one after
// another, with one memory.
func TestUnit_ExecutesTheSequenceOfVectors(t *testing.T) {
	b := newBench(t)
	ring, err := signing.ParseKeyring(golden(t, "keyring.jwks"))
	require.NoError(t, err)
	b.keys, b.now = ring, epoch.Add(3*time.Second)
	ignition := func(on bool) func() {
		return func() { b.body.Ignition = on; b.take(b.Watch(b.clock.Read(b.now))) }
	}
	jam := func() { ignition(false)(); b.faults.Jammed = []Part{DoorLock} }
	for _, v := range []struct {
		file           string
		state          telematics.State
		reason, detail string
		takes          time.Duration // in total, before the first command expires
		before         func()
	}{
		{file: "lock", state: telematics.Succeeded},
		{file: "attention", state: telematics.Succeeded, takes: 1100 * time.Millisecond},
		{file: "too-long", state: telematics.Rejected, reason: telematics.TTLTooLong},
		{file: "alg-none", state: telematics.Rejected, reason: telematics.BadSignature},
		{file: "hs256", state: telematics.Rejected, reason: telematics.BadSignature},
		{file: "critical", state: telematics.Rejected, reason: telematics.BadSignature},
		{file: "another-type", state: telematics.Rejected, reason: telematics.BadSignature},
		{file: "old-seq", state: telematics.Rejected, reason: telematics.OutOfOrder},
		{file: "top-case", state: telematics.Succeeded},
		{file: "short-pulse", state: telematics.Succeeded},
		{file: "long-pulse", state: telematics.Succeeded, takes: 5100 * time.Millisecond},
		{file: "pulse-too-long", state: telematics.Rejected, reason: telematics.Unsupported, detail: "params"},
		{file: "no-pulse", state: telematics.Rejected, reason: telematics.Unsupported, detail: "params"},
		{file: "unknown-signal", state: telematics.Rejected, reason: telematics.Unsupported, detail: "params"},
		{file: "no-params", state: telematics.Rejected, reason: telematics.Unsupported, detail: "params"},
		{file: "params-of-lock", state: telematics.Rejected, reason: telematics.Unsupported, detail: "params"},
		{file: "wrong-lane", state: telematics.Rejected, reason: telematics.Unsupported, detail: "lane"},
		{file: "nulls", state: telematics.Succeeded},
		{file: "armed", state: telematics.Succeeded, detail: string(Armed), before: ignition(true)},
		{file: "half-handover", state: telematics.Failed, detail: string(telematics.EnableDriving), before: jam},
		{file: "half-return", state: telematics.Failed, detail: string(telematics.DisableDriving)},
	} {
		if v.before != nil {
			v.before()
		}
		if v.file == "half-handover" && b.body.Immobilizer != Engaged {
			t.Errorf("with the ignition off the armed immobilizer is %s, want engaged", b.body.Immobilizer)
		}
		said := append(
			b.deliver(golden(t, filepath.Join("wire", "command-"+v.file+".jws"))),
			b.pass(cmp.Or(v.takes, 300*time.Millisecond))...)
		last := said[len(said)-1]
		if last.State != v.state || last.Reason != v.reason || last.Detail != v.detail {
			t.Errorf("%s: answer %s %q %q, want %s %q %q", v.file, last.State, last.Reason, last.Detail, v.state, v.reason, v.detail)
		}
	}
	b.faults.Jammed = nil
	saysOnce(t, b.deliver(golden(t, filepath.Join("wire", "command-interrupted.jws"))), telematics.Received, "", "")
	saysOnce(t, b.boot(), telematics.Failed, telematics.Interrupted, "")
}
