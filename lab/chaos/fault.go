package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"motorpool/lab/chaos/network"
	"motorpool/simulator"
)

// Kind is a kind of fault.
type Kind struct {
	Name   string
	Clock  bool // sets clocks wrong
	Delays bool // messages through the target are not lost, but arrive later
	// Alone keeps it out of the round of all faults: it needs separate servers, ends the state of
	// an installation, or strikes several targets. A round of one fault has it.
	Alone bool
	// plain leaves callers the orders that every car executes. Without it some cannot be.
	plain    bool
	separate bool // a separate flag chooses its round, too, which is not one of --fault=all

	// strike injects it, and returns when it is over. Nil: the world that it needs does.
	strike func(*round, context.Context, Fault) error
	// world starts the servers that it needs in addition. Nil: none.
	world func(*round, context.Context) error

	target  func(Plan, *rand.Rand) string // no two faults strike one target concurrently
	process bool                          // the target is a process, or one of few
	mild    bool                          // strikes few, or not hard, and so lasts longer
	least   time.Duration                 // minimum length, where it matters
	cars    func(car int) bool            // which cars it may strike, for faults of cars
	amount  func(*rand.Rand) int64        // draws how much of it; nil: it has no amount
	unit    string                        // of the amount
}

// Names that are used elsewhere. The other kinds are listed in Kinds only.
const (
	PostgresSync  = "postgres-sync"
	PostgresAsync = "postgres-async"
	RedisSentinel = "redis-sentinel"
	RedisCluster  = "redis-cluster"
	LeapTo2100    = "all clocks leap to 2100"
	LeapADay      = "all clocks leap a day"
	MonthsEnd     = "month's end"
	ClockAhead    = "instance clock ahead"
	ClockBehind   = "instance clock behind"
	FullDisk      = "disk of postgres full"
	RedisEvicting = "redis evicting"
	RadioLate     = "radio late"
	Restarted     = "cars restarted"

	RollingRestart = "rolling restart"
	ShardKilled    = "shard killed"
)

const (
	// MaxRadioDelay is how long a message is in flight at most.
	MaxRadioDelay = 20 * time.Second
	// minClockFault is how long a clock is wrong at least; mostly longer, so that messages that are
	// still published are noticed.
	minClockFault = 4 * time.Second
	// minHalt is how long a halt lasts at least: long enough that a command that was published
	// before would be retransmitted while the halt holds everywhere.
	minHalt = 6 * time.Second
	// minDeaf is how long a subscription is deaf at least, with the time to begin it.
	minDeaf = 4 * time.Second
)

// ofCars returns a kind of fault that strikes any cars.
func ofCars(name string, strike func(*round, context.Context, Fault) error) Kind {
	return Kind{Name: name, strike: strike, target: cars, mild: true, cars: anyCar}
}

// Kinds lists every kind of fault.
var Kinds = []Kind{
	{Name: "instance killed", strike: (*round).kill, target: instances, process: true},
	{Name: "instance frozen", strike: (*round).freeze, target: instances, process: true, Delays: true},
	{Name: "instance stopped", strike: (*round).stop, target: instances, process: true},
	{
		Name: ClockAhead, strike: (*round).setWrong, target: instances, process: true, mild: true, least: minClockFault, Clock: true,
		amount: between(31, 300), unit: "s",
	},
	{
		Name: ClockBehind, strike: (*round).setWrong, target: instances, process: true, mild: true, least: minClockFault, Clock: true,
		amount: behind, unit: "s",
	},
	{
		Name: "instance suspended", strike: (*round).suspend, target: instances, process: true, mild: true, least: minClockFault,
		Clock: true, amount: between(0, maxLag), unit: "s until its clock is right",
	},
	{Name: "mosquitto killed", strike: (*round).kill, target: onTarget(Mosquitto), process: true},
	{Name: "mosquitto frozen", strike: (*round).freeze, target: onTarget(Mosquitto), process: true, Delays: true},
	{Name: "redis killed", strike: (*round).kill, target: onTarget(Redis), process: true},
	{Name: "redis frozen", strike: (*round).freeze, target: onTarget(Redis), process: true},
	{Name: "redis emptied", strike: (*round).emptyRedis, target: onTarget(Redis), process: true},
	{Name: "postgres killed", strike: (*round).kill, target: onTarget(Postgres), process: true},
	{Name: "postgres frozen", strike: (*round).freeze, target: onTarget(Postgres), process: true},
	{Name: FullDisk, strike: (*round).fillDisk, target: onTarget(Postgres), process: true},

	{Name: "postgres read-only", strike: (*round).forbidWrites, target: onTarget("settings of postgres")},
	{Name: "vehicles locked", strike: (*round).lockVehicles, target: lockedVehicles, mild: true},
	{Name: "table locked", strike: (*round).lockTable, target: lockedTables, mild: true},
	{
		Name: RedisEvicting, strike: (*round).evict, target: onTarget("memory of redis"),
		amount: between(0, int64(len(EvictionPolicies)-1)), unit: "(policy)",
	},
	{Name: "instance log blocked", strike: (*round).blockLog, target: instances, process: true},
	{Name: "subscription deaf", strike: (*round).deafen, target: mosquittoLines, mild: true, least: minDeaf},
	{Name: "foreign signing key", strike: (*round).signWithForeignKey, target: instances, process: true},

	{Name: PostgresSync, world: withStandby(true, (*round).failOver), target: onTarget(Postgres), Alone: true},
	{
		Name: PostgresAsync, world: withStandby(false, (*round).loseCommits), target: onTarget(Postgres), Alone: true, plain: true,
	},
	{Name: RedisSentinel, world: (*round).startSentinel, target: onTarget(Redis), Alone: true},
	{Name: RedisCluster, world: (*round).startCluster, target: onTarget(Redis), Alone: true},
	{
		Name: LeapTo2100, strike: (*round).leap, target: onTarget("all clocks"), Alone: true, Clock: true,
		amount: always(int64(74 * 365 * 24 * time.Hour / time.Second)), unit: "s",
	},
	{
		Name: LeapADay, strike: (*round).leap, target: onTarget("all clocks"), Alone: true, Clock: true,
		amount: always(int64(25 * time.Hour / time.Second)), unit: "s",
	},
	{
		Name: MonthsEnd, strike: (*round).endMonth, target: onTarget("all clocks"), Alone: true, Clock: true,
		amount: between(3, 15), unit: "months",
	},
	{
		Name: "all clocks behind", strike: (*round).leap, target: onTarget("all clocks"), Alone: true, Clock: true,
		amount: between(-leeway, -3), unit: "s",
	},
	{
		Name: "postgres clock behind", strike: (*round).setWrong, target: onTarget(Postgres), Alone: true, Clock: true,
		amount: behind, unit: "s",
	},
	{
		Name: "machine suspended", strike: (*round).suspend, target: onTarget(everything), Alone: true, Clock: true, Delays: true,
		amount: between(0, maxLag), unit: "s until its clock is right",
	},
	{Name: "instances killed and redis emptied", strike: (*round).loseUnstored, target: onTarget("all instances and redis"), Alone: true},
	{Name: "presence stored late", strike: (*round).delayPresence, target: instances, cars: anyCar, Alone: true},
	{Name: "installation copied", strike: (*round).copyInstallation, target: onTarget("a second installation"), Alone: true},
	{Name: "standby gone", world: withStandby(true, (*round).loseStandby), target: onTarget(Postgres), Alone: true},
	{Name: "commit waits cancelled", world: withStandby(true, (*round).cancelWaits), target: onTarget(Postgres), Alone: true},
	{Name: "two primaries", world: withStandby(true, (*round).returnPrimary), target: onTarget(Postgres), Alone: true},
	{Name: "answers invented", strike: (*round).inventAnswers, target: onTarget("the unit that floods"), Alone: true},
	{
		Name: RollingRestart, world: (*round).startBalanced, strike: (*round).restartInTurns, target: onTarget("all instances"),
		Alone: true, plain: true, separate: true, least: 40 * time.Second,
	},
	{
		Name: ShardKilled, world: (*round).startShards, target: onTarget("one of several MQTT brokers"),
		Alone: true, plain: true, separate: true,
	},
	{Name: "none", strike: (*round).breakNothing, target: onTarget("nothing"), Alone: true},

	{Name: "commands halted", strike: (*round).haltCommands, target: halts, process: true, least: minHalt},
	{Name: "signing key rotated", strike: (*round).rotateKey, target: onTarget("signing key"), process: true},

	{Name: "network cut", strike: (*round).cutLine, target: lines},
	{Name: "network silent", strike: toxicLine(func(int64) network.Toxic { return network.Silence() }), target: lines},
	{
		Name: "network delayed", strike: toxicLine(network.Delay), target: lines, mild: true, Delays: true,
		amount: between(20, 800), unit: "ms",
	},
	{
		Name: "network slow", strike: toxicLine(network.Slowness), target: lines, mild: true, Delays: true,
		amount: between(2, 30), unit: "kB/s",
	},
	{Name: "network reset", strike: toxicLine(network.Reset), target: lines, amount: between(0, 400), unit: "ms later"},
	{Name: "network torn", strike: toxicLine(network.Tear), target: lines, amount: between(1, 4000), unit: "bytes later"},

	{
		Name: "car clocks wrong", strike: (*round).skewClocks, target: cars, mild: true, cars: mayLoseTime, Clock: true,
		amount: skew, unit: "ms",
	},
	{Name: Restarted, strike: (*round).restartCars, target: cars, mild: true, cars: MayRestart},
	ofCars("cars disconnected", (*round).disconnectCars),
	ofCars("commands lost", breakCars(func(f *simulator.Faults, _ int64) { f.Drop.Chance = 0.5 })),
	ofCars("commands damaged", breakCars(func(f *simulator.Faults, _ int64) { f.Damage.Chance = 0.7 })),
	ofCars("answers lost", breakCars(func(f *simulator.Faults, _ int64) { f.DropAnswer.Chance = 0.6 })),
	ofCars("answers duplicated", breakCars(func(f *simulator.Faults, _ int64) { f.Duplicate.Chance = 0.8 })),
	ofCars("answers reordered", breakCars(func(f *simulator.Faults, _ int64) { f.Reorder.Chance = 0.8 })),
	{
		Name: RadioLate, strike: breakCars(func(f *simulator.Faults, ms int64) { f.Delay = time.Duration(ms) * time.Millisecond }),
		target: cars, mild: true, cars: anyCar,
		amount: between(20000, 2*MaxRadioDelay.Milliseconds()), unit: "ms there and back",
	},
	ofCars("commands replayed", (*round).replay),
	ofCars("commands forged", (*round).forge),
}

// A unit that has restarted knows the time only from its clock. If that is far behind, and the
// first command that the unit receives was delayed for long, the unit cannot notice that the
// command is late: such a unit violates the protocol's requirement for clocks, and no service can
// make up for it. So no car both loses the time and restarts; and each executes a command before
// the faults begin, whose time of issue it then knows.

func mayLoseTime(car int) bool { return car%3 == 0 }

// MayRestart reports whether faults restart a car.
func MayRestart(car int) bool { return car%3 == 1 }

func anyCar(int) bool { return true }

func between(low, high int64) func(*rand.Rand) int64 {
	return func(rng *rand.Rand) int64 { return low + rng.Int64N(high-low+1) }
}

func always(amount int64) func(*rand.Rand) int64 { return func(*rand.Rand) int64 { return amount } }

// The servers, as targets.
const (
	Mosquitto = "mosquitto"
	Redis     = "redis"
	Postgres  = "postgres"

	everything = "all instances and servers"
)

// Agencies is the number of agencies: a halt of one must not affect the vehicles of the other.
const Agencies = 2

// CarGroups is the number of lines between the cars and Mosquitto: each may break alone.
const CarGroups = 4

// Instance returns the name of an instance as a target.
func Instance(i int) string { return fmt.Sprintf("instance %d", i) }

// ServerLine returns the name of the line between an instance and a server.
func ServerLine(i int, server string) string { return Instance(i) + " – " + server }

// CallersLine returns the name of the line between the callers and an instance.
func CallersLine(i int) string { return "callers – " + Instance(i) }

// CarsLine returns the name of the line between a group of cars and Mosquitto.
func CarsLine(group int) string { return fmt.Sprintf("cars %d – %s", group, Mosquitto) }

// Halt returns the name of a halt of an agency as a target; zero: of all.
func Halt(agency int) string {
	if agency == 0 {
		return "all agencies"
	}
	return fmt.Sprintf("agency %d", agency)
}

func onTarget(target string) func(Plan, *rand.Rand) string {
	return func(Plan, *rand.Rand) string { return target }
}

func instances(p Plan, rng *rand.Rand) string { return Instance(rng.IntN(p.Instances)) }

func lines(p Plan, rng *rand.Rand) string {
	all := lineNames(p.Instances)
	return all[rng.IntN(len(all))]
}

func lineNames(instances int) []string {
	var names []string
	for i := range instances {
		names = append(names, ServerLine(i, Mosquitto), ServerLine(i, Redis), ServerLine(i, Postgres), CallersLine(i))
	}
	for group := range CarGroups {
		names = append(names, CarsLine(group))
	}
	return names
}

func mosquittoLines(p Plan, rng *rand.Rand) string {
	return ServerLine(rng.IntN(p.Instances), Mosquitto)
}

// EvictionPolicies are those of Redis.
var EvictionPolicies = []string{
	"allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl", "noeviction",
}

// LockedTables are tables without which a command can be executed.
var LockedTables = []string{`used_signatures`, `charges`, `telemetry`, `strangers`}

// LockedTable returns the name of a locked table as a target.
func LockedTable(table string) string { return "table " + table }

func lockedTables(_ Plan, rng *rand.Rand) string {
	return LockedTable(LockedTables[rng.IntN(len(LockedTables))])
}

// LockedVehicles returns the name of locked vehicles as a target: all of an agency; zero: the first
// car.
func LockedVehicles(agency int) string {
	if agency == 0 {
		return "vehicle 1"
	}
	return fmt.Sprintf("vehicles of agency %d", agency)
}

func lockedVehicles(_ Plan, rng *rand.Rand) string { return LockedVehicles(rng.IntN(Agencies + 1)) }

func halts(_ Plan, rng *rand.Rand) string { return Halt(rng.IntN(Agencies + 1)) }

// carTargets is more than there are kinds of faults of cars, so that they rarely wait for each
// other.
const carTargets = 16

// cars returns one of the targets that faults of cars have: those of different targets may strike
// the same car.
func cars(_ Plan, rng *rand.Rand) string { return fmt.Sprintf("crew %d", rng.IntN(carTargets)) }

// skew draws by how many milliseconds the clock of a car is ahead.
func skew(rng *rand.Rand) int64 { return between(1000, 60_000)(rng) * int64(1-2*rng.IntN(2)) }

// Find returns the kind with a name, in which hyphens may stand for spaces; nil: there is none.
func Find(name string) *Kind {
	for i := range Kinds {
		if flag(Kinds[i].Name) == flag(name) {
			return &Kinds[i]
		}
	}
	return nil
}

// Scheduled are the kinds of the round of all faults.
func Scheduled() (kinds []*Kind) {
	for i := range Kinds {
		if !Kinds[i].Alone {
			kinds = append(kinds, &Kinds[i])
		}
	}
	return kinds
}

// leeway is by how many seconds a token may be too new: with such a clock, commands are taken.
const leeway = 55

// behind draws by how many seconds a clock is behind: within the leeway, or up to an hour.
func behind(rng *rand.Rand) int64 {
	return between(-[]int64{leeway, 3600}[rng.IntN(2)], -3)(rng)
}

// TellsReadiness reports whether commands to sound vehicles succeed, unless an instance is not
// ready, while a fault strikes a target: it strikes no vehicle, no caller, and commands are not
// halted.
func (k *Kind) TellsReadiness(target string) bool {
	return k.cars == nil && k.Name != "commands halted" && k.Name != ShardKilled &&
		!strings.HasPrefix(target, "callers ") && !strings.HasPrefix(target, "cars ")
}

// names lists the faults of rounds of one, as --fault takes them: all, or those that are in no
// other round.
func names(all bool) (names []string) {
	for _, k := range Kinds {
		if all || k.Alone && !k.separate {
			names = append(names, flag(k.Name))
		}
	}
	return append(names, commitsLost)
}

// flag is a name without spaces and apostrophes.
func flag(name string) string { return strings.NewReplacer(" ", "-", "'", "").Replace(name) }
