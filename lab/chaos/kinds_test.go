package main

import (
	"errors"
	"testing"

	"motorpool/internal/assert"
)

func TestFlags_EachFaultAloneIsASeparateRound(t *testing.T) {
	all := flags{Instances: 3, Vehicles: 300, Callers: 96, Fault: everyFault}
	if err := all.complete(); err != nil || all.Commands != briefCommands || all.Duration != briefDuration {
		t.Fatalf("all faults: %v, %+v", err, all)
	}
	names := names(false)
	if len(names) < 10 {
		t.Errorf("only %v", names)
	}
	for _, name := range names {
		one := all.of(name)
		if err := one.complete(); err != nil || one.Fault != name || one.Seed != all.Seed {
			t.Errorf("%s: %v, %+v", name, err, one)
		}
	}
	given := flags{Instances: 3, Vehicles: 300, OVMS: 10, Teltonika: 10, Callers: 96}
	rollout, shards := given, given
	rollout.Fault, shards.Fault = flag(RollingRestart), flag(ShardKilled)
	if err := errors.Join(rollout.complete(), shards.complete()); err != nil || rollout.Instances != 2 || shards.makeup().v1 != 300 {
		t.Errorf("by their names: %v, %+v, %+v", err, rollout, shards)
	}
	printed := flags{Instances: 3, Vehicles: 300, Callers: 96, Fault: everyFault, Print: true}
	if printed.complete() == nil {
		t.Error("--print was not refused")
	}
}

func TestWorse_ViolationsAreWorst(t *testing.T) {
	for _, c := range []struct{ a, b, want int }{
		{0, 0, 0}, {0, worthless, worthless}, {worthless, 0, worthless}, {violated, worthless, violated}, {worthless, violated, violated},
	} {
		assert.Equal(t, worse(c.a, c.b), c.want, "%d and %d", c.a, c.b)
	}
}
