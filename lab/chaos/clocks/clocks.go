// Package clocks sets the clocks that a running process reads: those of a machine whose time is
// wrong, or that was suspended. A process reads them in the vDSO, code that the kernel maps into
// each process, which this package replaces there.
package clocks

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// ErrUnsupported means that this machine does not allow it.
var ErrUnsupported = errors.New("clocks of processes cannot be set here")

// Each function makes its system call, and adds the seconds that come first in code.
const (
	clockGettime = 0x10
	gettimeofday = 0x3a
	timeOfDay    = 0x51
)

var code = []byte{
	0x10: 0xb8, 0xe4, 0, 0, 0, 0x0f, 0x05, // clock_gettime: mov eax, 228; syscall
	0x48, 0x8b, 0x15, 0xe2, 0xff, 0xff, 0xff, // mov rdx, [wall]
	0x85, 0xff, 0x74, 0x14, // CLOCK_REALTIME: je add
	0x83, 0xff, 0x05, 0x74, 0x0f, // CLOCK_REALTIME_COARSE: je add
	0x48, 0x8b, 0x15, 0xda, 0xff, 0xff, 0xff, // mov rdx, [monotonic]
	0x8d, 0x4f, 0xfe, 0x83, 0xf9, 0x02, 0x72, 0x03, // those of CPU time: jb over
	0x48, 0x01, 0x16, 0xc3, // add: add [rsi], rdx; over: ret
	0xb8, 0x60, 0, 0, 0, 0x0f, 0x05, // gettimeofday: mov eax, 96; syscall
	0x48, 0x85, 0xff, 0x74, 0x0a, 0x48, 0x8b, 0x15, 0xb3, 0xff, 0xff, 0xff, 0x48, 0x01, 0x17, 0xc3,
	0xb8, 0xc9, 0, 0, 0, 0x0f, 0x05, // time: mov eax, 201; syscall
	0x48, 0x03, 0x05, 0xa1, 0xff, 0xff, 0xff, 0x48, 0x85, 0xff, 0x74, 0x03, 0x48, 0x89, 0x07, 0xc3,
}

// Set sets the wall clock of a process ahead, in whole seconds; negative: back. Zero sets it right.
// The clocks of those that it forks later are as wrong.
func Set(pid int, ahead time.Duration) error {
	return change(pid, func(wrong []int64) { wrong[0] = int64(ahead / time.Second) })
}

// TakeBack takes back the whole seconds that have passed while a process was stopped, on all
// clocks, as where its machine was suspended. Set then sets the wall clock right.
func TakeBack(pid int, took time.Duration) error {
	return change(pid, func(wrong []int64) {
		for i := range wrong {
			wrong[i] -= int64(took / time.Second)
		}
	})
}

// change changes by how many seconds the wall clock and the monotonic clock are ahead. Of a process
// that has ended it does nothing.
func change(pid int, change func([]int64)) error {
	at, image, memory, err := vdso(pid)
	if err != nil {
		if stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); len(stat) == 0 || bytes.Contains(stat, []byte(") Z ")) {
			return nil
		}
		return fmt.Errorf("%w: process %d: %w", ErrUnsupported, pid, err)
	}
	defer memory.Close()
	free := (len(image) - len(code)) &^ 7 // padding, at the end of the last page
	if !bytes.Equal(image[free+clockGettime:free+len(code)], code[clockGettime:]) {
		if err := replace(at, image, memory, free); err != nil {
			return fmt.Errorf("%w: process %d: %w", ErrUnsupported, pid, err)
		}
	}
	ahead := make([]int64, 2)
	_, _ = binary.Decode(image[free:], binary.LittleEndian, ahead) // of the right size
	change(ahead)
	for i := range ahead { // one aligned word each, so that the process never reads half of it
		if _, err := memory.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(ahead[i])), at+int64(free+8*i)); err != nil {
			return fmt.Errorf("set the clock of process %d: %w", pid, err)
		}
	}
	return nil
}

// vdso returns where a process has it, its content, and the memory of the process.
func vdso(pid int) (at int64, image []byte, memory *os.File, err error) {
	if runtime.GOARCH != "amd64" {
		return 0, nil, nil, errors.New("it is of " + runtime.GOARCH)
	}
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, nil, nil, err
	}
	var end int64
	for line := range strings.Lines(string(maps)) {
		if strings.HasSuffix(line, "[vdso]\n") {
			_, err = fmt.Sscanf(line, "%x-%x", &at, &end)
		}
	}
	if end == 0 || err != nil {
		return 0, nil, nil, errors.Join(errors.New("it has no vDSO"), err)
	}
	if memory, err = os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0); err != nil {
		return 0, nil, nil, err
	}
	image = make([]byte, end-at)
	if _, err = memory.ReadAt(image, at); err != nil {
		memory.Close()
	}
	return at, image, memory, err
}

// replace writes the code into the free part of a vDSO, and has its functions jump there.
func replace(at int64, image []byte, memory *os.File, free int) error {
	if len(bytes.Trim(image[free:], "\x00")) > 0 {
		return errors.New("its vDSO has no room")
	}
	if _, err := memory.WriteAt(code, at+int64(free)); err != nil {
		return err
	}
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return err
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		return err
	}
	to := map[string]int{"__vdso_clock_gettime": clockGettime, "__vdso_gettimeofday": gettimeofday, "__vdso_time": timeOfDay}
	for _, s := range symbols {
		entry, ok := to[s.Name]
		if !ok {
			continue
		}
		// A jmp, and what follows, in one aligned word.
		jump := append([]byte{}, image[s.Value:s.Value+8]...)
		jump[0] = 0xe9
		binary.LittleEndian.PutUint32(jump[1:], uint32(int32(free+entry-int(s.Value)-5)))
		if _, err := memory.WriteAt(jump, at+int64(s.Value)); err != nil {
			return err
		}
		delete(to, s.Name)
	}
	if len(to) > 0 {
		return fmt.Errorf("its vDSO lacks %d functions", len(to))
	}
	return nil
}
