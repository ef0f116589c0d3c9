package simulator

import (
	"testing"

	"motorpool/telematics"
)

// [CMD-7]
func TestImmobilisingAnImmobilisedCarLeavesItSo(t *testing.T) {
	b := Hatchback(munich)
	b.Immobiliser, b.Ignition = Engaged, true
	b.do(telematics.DisableDriving)
	if b.Immobiliser != Engaged || b.EngineRuns() {
		t.Errorf("the immobiliser is %s, the engine runs %v", b.Immobiliser, b.EngineRuns())
	}
}
