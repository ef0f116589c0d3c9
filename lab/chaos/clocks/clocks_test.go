package clocks

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/simulator/devstack"
)

// A process reads the clocks as they are set, and again as they are set right.
func TestSet(t *testing.T) {
	if os.Getenv("TELL") != "" {
		began := time.Now()
		for {
			now := time.Now()
			fmt.Println(now.UnixNano(), int64(now.Sub(began)))
			_, _ = fmt.Scanln()
		}
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=TestSet$")
	cmd.Env = append(os.Environ(), "TELL=1")
	ask, err := cmd.StdinPipe()
	require.NoError(t, err)
	answers, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewReader(answers)
	began := time.Now()
	tells := func(wall, monotonic time.Duration) {
		t.Helper()
		var at, passed int64
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		_, err = fmt.Sscan(line, &at, &passed)
		require.NoError(t, err)
		offWall, offMonotonic := time.Until(time.Unix(0, at))-wall, time.Duration(passed)-time.Since(began)-monotonic
		if max(offWall.Abs(), offMonotonic.Abs()) > 15*time.Second {
			t.Errorf("the clocks are off by %v and %v", offWall, offMonotonic)
		}
	}
	tells(0, 0)
	pid, century := cmd.Process.Pid, 100*365*24*time.Hour
	for _, step := range []struct {
		change          func() error
		wall, monotonic time.Duration
	}{
		{func() error { return Set(pid, -time.Hour) }, -time.Hour, 0},
		{func() error { return Set(pid, century) }, century, 0},
		{func() error { return TakeBack(pid, time.Minute) }, century - time.Minute, -time.Minute},
		{func() error { return Set(pid, 0) }, 0, -time.Minute},
	} {
		err := step.change()
		if errors.Is(err, ErrUnsupported) {
			devstack.Need(t, err)
		}
		require.NoError(t, err)
		_, err = ask.Write([]byte("\n"))
		require.NoError(t, err)
		tells(step.wall, step.monotonic)
	}
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	require.NoError(t, Set(pid, time.Hour), "a process that has ended")
}
