package telematics

import (
	"time"

	"github.com/google/uuid"
)

// Order is what a caller asks for: an action on a vehicle, within a budget.
type Order struct {
	Vehicle   VehicleID
	Action    Action
	Attention *Attention    // with AttentionSignal only
	Budget    time.Duration // MinBudget to MaxBudget; zero: DefaultBudget
	Actor     Actor
	RequestID uuid.UUID
}
