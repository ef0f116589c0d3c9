package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"motorpool/cmd/chaos/network"
	"motorpool/simulator"
)

// kind is a kind of fault.
type kind struct {
	name   string
	target func(plan, *rand.Rand) string // what it strikes; no two faults strike one target at once
	strike func(*world, context.Context, fault) error

	process bool                   // the target is a process, or one of few
	mild    bool                   // strikes few, or not hard, and so lasts longer
	least   time.Duration          // that it lasts, where its length matters
	late    bool                   // what is under way through the target is not lost, but arrives later
	cars    func(car int) bool     // of car faults: which cars it may strike
	skews   bool                   // sets clocks wrong
	amount  func(*rand.Rand) int64 // how much of it. Defaults to nothing to draw
	unit    string                 // of the amount
}

const (
	fullDisk  = "disk of postgres full"
	radioLate = "radio late"
	// latest is how long a message is on its way at most.
	latest = 20 * time.Second
)

// kinds lists every kind of fault.
var kinds = []kind{
	{name: "instance killed", target: instances, process: true, strike: (*world).kill},
	{name: "instance frozen", target: instances, process: true, late: true, strike: (*world).freeze},
	{name: "instance stopped", target: instances, process: true, strike: (*world).stop},
	{name: clockAhead, target: instances, process: true, mild: true, least: clockFaultLength, amount: from(31, 300), unit: "s", strike: (*world).setClockAhead},
	{name: "mosquitto killed", target: only(mosquittoServer), process: true, strike: (*world).kill},
	{name: "mosquitto frozen", target: only(mosquittoServer), process: true, late: true, strike: (*world).freeze},
	{name: "redis killed", target: only(redisServer), process: true, strike: (*world).kill},
	{name: "redis frozen", target: only(redisServer), process: true, strike: (*world).freeze},
	{name: "redis emptied", target: only(redisServer), process: true, strike: (*world).emptyRedis},
	{name: "postgres killed", target: only(postgresServer), process: true, strike: (*world).kill},
	{name: "postgres frozen", target: only(postgresServer), process: true, strike: (*world).freeze},
	{name: fullDisk, target: only(postgresServer), process: true, strike: (*world).fillDisk},

	{name: "commands halted", target: halts, process: true, least: haltLength, strike: (*world).haltCommands},
	{name: "signing key rotated", target: only("signing key"), process: true, strike: (*world).rotateKey},

	{name: "network cut", target: lines, strike: (*world).cutLine},
	{name: "network silent", target: lines, strike: poison(func(fault) network.Toxic { return network.Silence() })},
	{name: "network delayed", target: lines, strike: poison(func(f fault) network.Toxic { return network.Delay(f.Amount) }), mild: true, late: true, amount: from(20, 800), unit: "ms"},
	{name: "network slow", target: lines, strike: poison(func(f fault) network.Toxic { return network.Slowness(f.Amount) }), mild: true, late: true, amount: from(2, 30), unit: "kB/s"},
	{name: "network reset", target: lines, strike: poison(func(f fault) network.Toxic { return network.Reset(f.Amount) }), amount: from(0, 400), unit: "ms later"},
	{name: "network torn", target: lines, strike: poison(func(f fault) network.Toxic { return network.Tear(f.Amount) }), amount: from(1, 4000), unit: "bytes later"},

	{name: "car clocks wrong", target: cars, strike: (*world).skewClocks, mild: true, cars: mayLoseTime, skews: true},
	{name: "cars restarted", target: cars, strike: (*world).restartCars, mild: true, cars: mayRestart},
	{name: "cars disconnected", target: cars, strike: (*world).disconnectCars, mild: true, cars: anyCar},
	{name: "commands lost", target: cars, mild: true, cars: anyCar, strike: ail(func(f *simulator.Faults, _ fault) { f.Drop.Chance = 0.5 })},
	{name: "commands damaged", target: cars, mild: true, cars: anyCar, strike: ail(func(f *simulator.Faults, _ fault) { f.Damage.Chance = 0.7 })},
	{name: "answers lost", target: cars, mild: true, cars: anyCar, strike: ail(func(f *simulator.Faults, _ fault) { f.DropAnswer.Chance = 0.6 })},
	{name: "answers duplicated", target: cars, mild: true, cars: anyCar, strike: ail(func(f *simulator.Faults, _ fault) { f.Duplicate.Chance = 0.8 })},
	{name: "answers reordered", target: cars, mild: true, cars: anyCar, strike: ail(func(f *simulator.Faults, _ fault) { f.Reorder.Chance = 0.8 })},
	{name: radioLate, target: cars, mild: true, cars: anyCar, amount: from(20000, 2*latest.Milliseconds()), unit: "ms there and back", strike: ail(lateness)},
	{name: "commands replayed", target: cars, strike: (*world).replay, mild: true, cars: anyCar},
	{name: "commands forged", target: cars, strike: (*world).forge, mild: true, cars: anyCar},
}

// A unit that has restarted knows the time only from its clock. If that is far behind, and the first command that it
// hears was long on its way, nothing can tell it that the command is late: such a unit breaks the clock's part of the
// protocol, and no service can make up for it. So no car both loses the time and restarts; and each executes a command
// before the faults begin, whose time of issue it then knows.
func mayLoseTime(car int) bool { return car%3 == 0 }
func mayRestart(car int) bool  { return car%3 == 1 }
func anyCar(int) bool          { return true }

// The targets. A fault of cars is exclusive only among its cars' own names, so each has a target of its own.
const (
	mosquittoServer = "mosquitto"
	redisServer     = "redis"
	postgresServer  = "postgres"
)

func only(target string) func(plan, *rand.Rand) string {
	return func(plan, *rand.Rand) string { return target }
}

func instances(p plan, rng *rand.Rand) string { return instanceName(rng.IntN(p.Instances)) }

func lines(p plan, rng *rand.Rand) string {
	all := lineNames(p.Instances)
	return all[rng.IntN(len(all))]
}

// cars names a crew: car faults of different crews overlap.
func cars(_ plan, rng *rand.Rand) string { return fmt.Sprintf("crew %d", rng.IntN(crews)) }

// crews is more than one deck has car faults, so that they rarely wait for each other.
const crews = 16

func from(low, high int64) func(*rand.Rand) int64 {
	return func(rng *rand.Rand) int64 { return low + rng.Int64N(high-low+1) }
}

func lateness(f *simulator.Faults, strikes fault) { f.Delay = milliseconds(strikes.Amount) }

// carGroups is how many lines the cars share: each may break alone.
const carGroups = 4

// The names of the lines.
func instanceName(i int) string          { return fmt.Sprintf("instance %d", i) }
func lineOf(i int, server string) string { return instanceName(i) + " – " + server }
func callersLine(i int) string           { return "callers – " + instanceName(i) }
func carsLine(group int) string          { return fmt.Sprintf("cars %d – %s", group, mosquittoServer) }
func groupOf(car int) int                { return car % carGroups }

func lineNames(instances int) []string {
	var names []string
	for i := range instances {
		names = append(names, lineOf(i, mosquittoServer), lineOf(i, redisServer), lineOf(i, postgresServer), callersLine(i))
	}
	for group := range carGroups {
		names = append(names, carsLine(group))
	}
	return names
}
