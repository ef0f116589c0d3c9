package telematics

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/assert"
)

// now is the time of the tests of this package.
var now = time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)

// aCommand has an id that is easy to recognise.
var aCommand = uuid.MustParse("0b6e5a4c-8f1d-4a7e-9c3b-2d1e0f9a8b7c")

func TestExpires_IsTheDeadlineRoundedUpToASecond(t *testing.T) {
	cases := []struct{ past, want time.Duration }{
		{0, 0},
		{time.Nanosecond, time.Second},
		{500 * time.Millisecond, time.Second},
		{time.Second - time.Nanosecond, time.Second},
		{time.Second, time.Second},
	}
	for _, c := range cases {
		command := Command{Deadline: now.Add(c.past)}
		if got := command.Expires(); !got.Equal(now.Add(c.want)) {
			t.Errorf("deadline %v after a full second: expires %v after it, want %v", c.past, got.Sub(now), c.want)
		}
	}
}

func TestClaims_LongestBudgetIsWithinTheUnitsLimit(t *testing.T) {
	const unitsLimit = 35 * time.Second // [CMD-4]
	for _, offset := range []time.Duration{0, time.Nanosecond, 999 * time.Millisecond} {
		requested := now.Add(offset)
		claims := (&Command{Requested: requested, Deadline: requested.Add(MaxBudget)}).Claims()
		if ttl := claims.Expires.Sub(claims.IssuedAt); ttl > unitsLimit {
			t.Errorf("exp - iat = %v, want at most %v", ttl, unitsLimit)
		}
	}
}

func TestClaims_AreThoseOfTheCommand(t *testing.T) {
	c := Command{
		ID: aCommand, Unit: "unit-1", Action: AttentionSignal, Attention: &Attention{Horn, time.Second},
		Lane: AttentionLane, Seq: 7, Requested: now.Add(300 * time.Millisecond), Deadline: now.Add(10300 * time.Millisecond),
	}
	want := Claims{
		Command: aCommand, Unit: "unit-1", Action: AttentionSignal, Attention: c.Attention,
		Lane: AttentionLane, Seq: 7, IssuedAt: now, Expires: now.Add(11 * time.Second),
	}
	assert.Equal(t, c.Claims(), want, "claims")
}

func TestCommand_BudgetAndLatencyBeginAtTheRequest(t *testing.T) {
	c := Command{Requested: now, Deadline: now.Add(DefaultBudget)}
	if c.Budget() != 10*time.Second || c.Latency() != 0 {
		t.Errorf("open command: budget %v, latency %v; want 10 s and none", c.Budget(), c.Latency())
	}
	c.Completed = now.Add(2310 * time.Millisecond)
	assert.Equal(t, c.Latency(), 2310*time.Millisecond, "settled command: latency")
}

func TestCommand_AnActorSeesItsOwnAgencyOrAll(t *testing.T) {
	cases := []struct {
		actor, owner AgencyID
		sees         bool
	}{{0, 1, true}, {0, 0, true}, {1, 1, true}, {1, 2, false}, {1, 0, false}}
	for _, c := range cases {
		assert.Equal(t, (Actor{Agency: c.actor}).Sees(c.owner), c.sees, "actor of agency %d sees agency %d", c.actor, c.owner)
	}
}
