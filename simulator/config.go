package simulator

import (
	"cmp"
	"crypto/rand"
	"hash/fnv"
	"log/slog"
	mathrand "math/rand/v2"
	"time"

	"motorpool/telematics"
	"motorpool/telematics/signing"
)

// Config is one car. The zero value is a healthy hatchback with a random serial, at a broker on
// this machine; give it the Keyring, or it rejects every command.
type Config struct {
	Unit     telematics.Unit // serial, MQTT user name and client id. Defaults to a random one
	Password string          // Defaults to none
	Keyring  signing.Keyring
	Profile  Profile

	Broker   string        // MQTT URL. Defaults to tcp://127.0.0.1:1883
	Radio    Radio         // Defaults to MQTT at Broker
	Memory   Memory        // what survives a restart of the unit. Defaults to RAM
	Recorder *Recorder     // Defaults to none
	Logger   *slog.Logger  // Defaults to none
	Interval time.Duration // between whole reports. Defaults to 20 s
	Boot     time.Duration // from a restart to the next connection attempt. Defaults to 1 s
	Effort   time.Duration // that one movement of a part takes. Defaults to 20 ms
	Seed     uint64        // of everything random in the car, together with its serial
}

// Profile is the kind of a car, and its faults.
type Profile struct {
	Name    string              // for people. Defaults to "hatchback"
	Actions []telematics.Action // that it declares. Defaults to CarActions
	Body    Body                // Defaults to Hatchback in the middle of Munich
	Latency Latency             // of its radio. Defaults to Fast
	Faults  Faults
	Clock   Clock
	// Gone is how long ago its connection broke permanently. The car connects once, so that the
	// broker publishes its last will, dated then, and never again. Defaults to 0: it is there.
	Gone time.Duration
}

func (c Config) withDefaults() Config {
	c.Unit = cmp.Or(c.Unit, telematics.Unit("sim-"+rand.Text()[:12]))
	if c.Radio == nil {
		c.Radio = MQTT{Broker: c.Broker}
	}
	if c.Memory == nil {
		c.Memory = &RAM{}
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.Interval = cmp.Or(c.Interval, 20*time.Second)
	c.Boot = cmp.Or(c.Boot, time.Second)
	c.Effort = cmp.Or(c.Effort, 20*time.Millisecond)
	c.Profile = c.Profile.withDefaults()
	return c
}

func (p Profile) withDefaults() Profile {
	p.Name = cmp.Or(p.Name, "hatchback")
	if p.Actions == nil {
		p.Actions = CarActions
	}
	if p.Body.Powertrain == "" {
		p.Body = Hatchback(munich)
	}
	p.Body.Immobilizer = cmp.Or(p.Body.Immobilizer, Released)
	if p.Latency == nil {
		p.Latency = Fast
	}
	return p
}

// Random returns a unit's source of random numbers: the same for the same seed and serial.
func Random(seed uint64, unit telematics.Unit) *mathrand.Rand {
	serial := fnv.New64a()
	serial.Write([]byte(unit))
	return mathrand.New(mathrand.NewPCG(seed, serial.Sum64()))
}

// Rule is when a fault strikes; the zero value is never. Both fields may be set.
type Rule struct {
	Chance float64 // from 0 to 1, drawn from the car's seeded source
	Every  int     // each n-th time; 1: always
	met    int
}

// Always strikes each time.
var Always = Rule{Every: 1}

// Faults are the faults of a car. They can be combined; the zero value is a healthy car.
type Faults struct {
	// Commands are lost. Chance applies to each delivery; Every to the first delivery of each n-th
	// command.
	Drop Rule
	// Commands arrive twice: a copy with a damaged signature, and up to 3 s later an undamaged one.
	Damage     Rule
	DropAnswer Rule          // answers lost on the way
	Duplicate  Rule          // answers sent twice
	Reorder    Rule          // answers held back for up to a second, so that later ones overtake
	Late       time.Duration // answers held back for that long
	Delay      time.Duration // additional latency of every command and its answer together
	Refuse     Rule          // the clock is lost for that command: it is rejected, clock_unset
	Fail       Rule          // nothing that should move does
	Jammed     []Part        // these parts never move
	// The application hangs: commands arrive, nothing is done or answered; reports go on.
	Silent  bool
	Offline bool // no network
}

// strikes draws once.
func (r *Rule) strikes(rng *mathrand.Rand) bool {
	turn := r.turn()
	return r.draw(rng) || turn
}

func (r *Rule) turn() bool {
	r.met++
	return r.Every > 0 && r.met%r.Every == 0
}

func (r *Rule) draw(rng *mathrand.Rand) bool { return r.Chance > 0 && rng.Float64() < r.Chance }
