package simulator

import (
	"math/rand/v2"
	"time"
)

// Rule says when a fault strikes; the zero value never does. Both halves may be set.
type Rule struct {
	Chance float64 // from 0 to 1, drawn from the car's seeded source
	Every  int     // each n-th time; 1: always
	met    int
}

// Always strikes each time.
var Always = Rule{Every: 1}

// Faults is what is wrong with a car. They combine; the zero value is a healthy car.
type Faults struct {
	Drop       Rule          // commands lost on the way. Chance takes any delivery; Every the first one of each n-th command
	Damage     Rule          // commands come twice: a copy whose signature is damaged, and up to 3 s later the sound one
	DropAnswer Rule          // answers lost on the way
	Duplicate  Rule          // answers sent twice
	Reorder    Rule          // answers held back for up to a second, so that later ones overtake
	Delay      time.Duration // more time for every command and its answer
	Refuse     Rule          // the clock is lost for that command: it is rejected, clock_unset
	Fail       Rule          // nothing that should move does
	Jammed     []Part        // these parts never move
	Silent     bool          // the application hangs: commands arrive, nothing is done or answered; reports go on
	Offline    bool          // no network
}

// strikes draws once.
func (r *Rule) strikes(rng *rand.Rand) bool {
	turn := r.turn()
	return r.draw(rng) || turn
}

func (r *Rule) turn() bool {
	r.met++
	return r.Every > 0 && r.met%r.Every == 0
}

func (r *Rule) draw(rng *rand.Rand) bool { return r.Chance > 0 && rng.Float64() < r.Chance }
