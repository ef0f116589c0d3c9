package simulator

import (
	"testing"

	"motorpool/telematics"
)

// [CMD-7]
func TestBody_ImmobilizingTwiceChangesNothing(t *testing.T) {
	b := Hatchback(munich)
	b.Immobilizer, b.Ignition = Engaged, true
	b.do(telematics.DisableDriving)
	if b.Immobilizer != Engaged || b.EngineRuns() {
		t.Errorf("the immobilizer is %s and the engine runs %v, want it engaged and stopped", b.Immobilizer, b.EngineRuns())
	}
}
