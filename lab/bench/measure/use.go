package measure

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"motorpool/lab/bench/report"
)

// ThisMachine describes this machine.
func ThisMachine() report.Machine {
	m := report.Machine{At: time.Now().UTC().Truncate(time.Second), Cores: runtime.NumCPU(), Go: runtime.Version()}
	text, _ := os.ReadFile("/proc/loadavg") // where there is none,
	_, _ = fmt.Sscan(string(text), &m.Load) // the load is not known
	return m
}

// OpenFiles finds out how many connections processes may have, and allows as many to those that
// this one starts: Go raises the limit for its own process only.
func (s *Setup) OpenFiles() error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("read the limit of open files: %w", err)
	}
	s.connections = int(min(limit.Cur, 1<<20)) - 1000 // other files
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
}

// processes are process ids by name.
type processes map[string][]int

// Processes that make the load: what they use is not of the servers.
const (
	cars      = "cars"
	caller    = "caller"
	publisher = "publisher"
)

// use is seconds of CPU time by the name of processes.
type use map[string]float64

// use returns the CPU time that processes and their children have used, but for the one that is
// left out.
func (p processes) use(leftOut int) (use, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return nil, fmt.Errorf("read CPU time: %w", err)
	}
	sum := use{}
	for _, process := range all {
		stat, err := process.Stat()
		if err != nil || process.PID == leftOut { // it has ended
			continue
		}
		for name, pids := range p {
			if slices.Contains(pids, process.PID) {
				const ticksPerSecond = 100 // USER_HZ of every Linux
				sum[name] += stat.CPUTime() + float64(stat.CUTime+stat.CSTime)/ticksPerSecond
			} else if slices.Contains(pids, stat.PPID) {
				sum[name] += stat.CPUTime()
			}
		}
	}
	return sum, nil
}

// per adds figures of each process, and of all servers, with and without the MQTT broker.
func (u use) per(number float64, unit string, to report.Round) {
	servers := 0.0
	for name, seconds := range u {
		to[unit+"-"+name] = seconds / number
		if name != cars && name != caller && name != publisher {
			servers += seconds
		}
	}
	to[unit+"-servers"] = servers / number
	to[unit+"-but-MQTT"] = (servers - u["mosquitto"]) / number
}

// resident returns the resident memory of processes, and the most that it ever was, in bytes.
func resident(pids ...int) (now, most float64, err error) {
	for _, pid := range pids {
		var status procfs.ProcStatus
		p, err := procfs.NewProc(pid)
		if err == nil {
			status, err = p.NewStatus()
		}
		if err != nil {
			return 0, 0, fmt.Errorf("read memory: %w", err)
		}
		now, most = now+float64(status.VmRSS), most+float64(status.VmHWM)
	}
	return now, most, nil
}
