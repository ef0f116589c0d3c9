package main

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestLittleIsInUseSoThereIsRoomForGarbage(t *testing.T) {
	const mega = 1 << 20
	for inUse, want := range map[uint64]int{0: 1000, mega: 1000, 32 * mega: 300, 96 * mega: 100, 192 * mega: 100, 4096 * mega: 100} {
		if got := garbagePercent(inUse); got != want {
			t.Errorf("%d MB in use: %d %% may be garbage, want %d %%", inUse/mega, got, want)
		}
	}
}

func TestGarbageIsPacedAfterEachCollection(t *testing.T) {
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(50)
	defer debug.SetGCPercent(before)
	paceGarbage()
	held := make([]byte, 400<<20) // as much may be garbage
	deadline := time.Now().Add(10 * time.Second)
	for percent := 0; percent != 100; {
		if time.Now().After(deadline) {
			t.Fatalf("with 400 MB in use %d %% may be garbage, want 100 %%", percent)
		}
		runtime.GC()
		time.Sleep(10 * time.Millisecond)
		percent = debug.SetGCPercent(50)
		debug.SetGCPercent(percent)
	}
	runtime.KeepAlive(held)
}
