package brokertest

import (
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"motorpool/internal/require"
	"motorpool/telematics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// vehicles returns a function that adds a vehicle with a unit.
func vehicles(m *Memory) func() (telematics.VehicleID, telematics.Unit) {
	var last telematics.VehicleID
	return func() (telematics.VehicleID, telematics.Unit) {
		last++
		unit := telematics.Unit(fmt.Sprintf("unit-%d", last))
		m.Put(telematics.Twin{Vehicle: telematics.Vehicle{ID: last, AgencyID: 1, Unit: unit, Powertrain: telematics.Combustion}})
		return last, unit
	}
}

func TestMemory_KeepsTheContractOfCommands(t *testing.T) {
	CommandsContract(t, func(*testing.T) CommandRecord {
		m := NewMemory()
		add := vehicles(m)
		return CommandRecord{
			Here: m.Commands, There: m.Commands,
			Vehicle: func() telematics.VehicleID { id, _ := add(); return id },
			Fleet:   fleet(m),
			Entries: func(id telematics.CommandID) []telematics.Activity {
				var entries []telematics.Activity
				for _, entry := range m.Entries() {
					if entry.Command == id {
						entries = append(entries, entry)
					}
				}
				return entries
			},
		}
	})
}

func fleet(m *Memory) Fleet { return Fleet{Record: m.Record, Change: m.Change, Remove: m.Remove} }

func TestMemory_KeepsTheContractOfVehicles(t *testing.T) {
	VehiclesContract(t, func(*testing.T) VehicleRecord {
		m := NewMemory()
		add := vehicles(m)
		return VehicleRecord{
			Vehicles: m, Commands: m.Commands, Record: m.Record,
			Vehicle: func() telematics.VehicleID { id, _ := add(); return id }, Fleet: fleet(m),
		}
	})
}

func TestMemory_KeepsTheContractOfPendingTables(t *testing.T) {
	PendingTableContract(t, func(*testing.T) PendingTables {
		m := NewMemory()
		return PendingTables{Here: m.Pending, There: m.Pending, Flush: m.Pending.Flush}
	})
}

func TestMemory_KeepsTheContractOfTwins(t *testing.T) {
	TwinsContract(t, func(t *testing.T) TwinRecord {
		m := NewMemory()
		return TwinRecord{Here: m, There: m, Vehicle: vehicles(m), Twin: func(id telematics.VehicleID) telematics.Twin {
			twin, err := m.Twin(t.Context(), id)
			require.NoError(t, err, "Twin")
			return twin
		}}
	})
}

func TestMemory_KeepsTheContractOfContacts(t *testing.T) {
	ContactsContract(t, func(*testing.T) ContactRecord {
		m := NewMemory()
		return ContactRecord{Here: m, There: m, Vehicle: vehicles(m)}
	})
}

func TestEvents_KeepsTheContractOfEvents(t *testing.T) {
	EventsContract(t, func(*testing.T) EventLogs {
		log := NewEvents()
		return EventLogs{Here: log, There: log, Empty: log.Empty}
	})
}
