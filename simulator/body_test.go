package simulator

import (
	"testing"

	"motorpool/telematics"
)

// [CMD-7]
func TestImmobilizingAnImmobilizedCarLeavesItSo(t *testing.T) {
	b := Hatchback(munich)
	b.Immobilizer, b.Ignition = Engaged, true
	b.do(telematics.DisableDriving)
	if b.Immobilizer != Engaged || b.EngineRuns() {
		t.Errorf("the immobilizer is %s, the engine runs %v", b.Immobilizer, b.EngineRuns())
	}
}
