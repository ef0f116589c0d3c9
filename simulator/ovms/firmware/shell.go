package firmware

import (
	"fmt"
	"strings"
	"time"
)

// run executes a line of the shell, and returns what it prints: no echo and no prompt, a line feed
// after each line (server, RunCommand; main/buffered_shell.cpp).
func (m *Module) run(line string) string {
	words := strings.Fields(line)
	if len(words) == 0 {
		return ""
	}
	switch command := words[0]; {
	case command == "lock" || command == "unlock":
		return m.lock(command, words[1:])
	case line == "metrics list -s v.e.locked": // main/ovms_metrics.cpp:532
		at, ok := m.metrics.find("v.e.locked")
		if !ok {
			return "[---] v.e.locked\n"
		}
		age := min(int(time.Since(m.metrics[at].at)/time.Second), 99)
		return fmt.Sprintf("[%02d-] %-40.40s %s\n", age, "v.e.locked", m.metrics[at].value)
	case strings.HasPrefix(line, "server v3 update "): // server, ovmsv3_update
		switch what := strings.TrimSpace(strings.TrimPrefix(line, "server v3 update ")); what {
		case "all":
			m.sentAll = -everyAll
			return "Server V3 data update for all metrics has been scheduled\n"
		case "modified":
			m.sent = 0
			return "Server V3 data update for modified metrics has been scheduled\n"
		}
	}
	return "Unrecognised command\n" // main/ovms_command.cpp:541
}

// lock is components/vehicle/vehicle_shell.cpp:649, with a vehicle that says yes before it has done
// anything (components/vehicle_nissanleaf/src/vehicle_nissanleaf.cpp:2690): its locks are in the
// metric alone. The firmware does not look at the PIN; vehicles that do answer as if it failed.
func (m *Module) lock(command string, arguments []string) string {
	if len(arguments) != 1 || arguments[0] == "?" { // components/vehicle/vehicle.cpp:91
		return "Usage: " + command + " <pin>\n"
	}
	if m.config.ReadOnly {
		return "Error: vehicle could not be " + command + "ed\n"
	}
	time.AfterFunc(m.config.Doors, func() { m.Set("v.e.locked", command == "lock") })
	return "Vehicle " + command + "ed\n"
}
