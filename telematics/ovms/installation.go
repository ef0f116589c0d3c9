package ovms

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"motorpool/telematics"
)

// Keys of an installation. Lock and unlock need both.
const (
	TypeKey = "type" // the module's vehicle type, as its metric v.type shows it
	PINKey  = "pin"  // the module's PIN, a secret
)

// Secret implements telematics.SecretKeeper.
func (Dialect) Secret(setting string) bool { return setting == PINKey }

// model is how the module's code for a vehicle type handles the locks.
type model struct {
	locks bool // lock and unlock are implemented
	// v.e.locked comes from the vehicle. If not, the module sets the value itself as it executes
	// the command, and the value confirms nothing.
	confirmsLock, confirmsUnlock bool
}

// Twizy is the vehicle type whose module takes "lock N" for a speed limit of N km/h, also while
// driving (vehicle_renaulttwizy.cpp: CommandLock).
const Twizy = "RT"

// models are the vehicle types that have lock and unlock in the firmware, and the Twizy. Their
// source is CommandLock, CommandUnlock and the writes of ms_v_env_locked in components/vehicle_*
// (docs/ovms.md).
var models = map[string]model{
	"CBOLT": {true, true, true},   // vehicle_boltev
	"DEMO":  {true, false, false}, // vehicle_demo
	"FT5E":  {true, true, true},   // vehicle_fiat500
	"KN":    {true, true, true},   // vehicle_kianiroev; checks the PIN
	"KS":    {true, true, true},   // vehicle_kiasoulev; checks the PIN
	"NL":    {true, true, true},   // vehicle_nissanleaf
	Twizy:   {},                   // vehicle_renaulttwizy
	"RZ":    {true, false, false}, // vehicle_renaultzoe, the Kangoo
	"RZ2":   {true, true, true},   // vehicle_renaultzoe_ph2; checks the PIN
	"SE":    {true, false, false}, // vehicle_smarted
	"SQ":    {true, false, true},  // vehicle_smarteq
	"TR":    {true, true, true},   // vehicle_teslaroadster
	"VA":    {true, true, true},   // vehicle_voltampera; checks the PIN
	"VWEG":  {true, true, true},   // vehicle_vwegolf; checks the PIN
}

func (m model) confirms(a telematics.Action) bool {
	return a == telematics.Lock && m.confirmsLock || a == telematics.Unlock && m.confirmsUnlock
}

// pinPattern matches a valid PIN. A blank in it would begin another argument. A Twizy that was
// recorded as another vehicle type refuses a speed limit of 1000 km/h and more, but not 0012
// (rt_sevcon_tuning.cpp: CfgLock). A Tesla Roadster accepts 8 digits at most.
var pinPattern = regexp.MustCompile(`^[1-9][0-9]{3,7}$`)

// check returns what is wrong with an installation; the error does not contain the PIN.
func check(i telematics.Installation) error {
	for key := range i {
		if key != TypeKey && key != PINKey {
			return fmt.Errorf("protocol %s has no setting %q: want %s and %s", Protocol, key, TypeKey, PINKey)
		}
	}
	kind, hasType := i[TypeKey]
	pin, hasPIN := i[PINKey]
	m, known := models[kind]
	switch {
	case hasType && !known:
		return fmt.Errorf(
			"lock and unlock are not available for vehicle type %.32q: want one of %s, or no type for a unit that is only observed",
			kind, strings.Join(slices.Sorted(maps.Keys(models)), ", "),
		)
	case hasPIN && !hasType:
		return errors.New("type is missing: with a PIN, the vehicle type of the module is required")
	case hasPIN && !pinPattern.MatchString(pin):
		return errors.New("pin is not of 4 to 8 digits, the first one not 0")
	case m.locks && !hasPIN:
		return fmt.Errorf("pin is missing: lock and unlock of vehicle type %s need the PIN of the module", kind)
	}
	return nil
}
