// What the bell does: it loads when it rings.
import type { Alert } from '../api/client';
import { language, t } from '../texts/index.svelte';
import { subjectOf, textOf } from './alertWords';

export function ring(alert: Omit<Alert, 'holder'>) {
  void beep();
  if (!('Notification' in window) || Notification.permission !== 'granted') return;
  const body = textOf(alert, t(), language.locale);
  const shown = new Notification(subjectOf(alert), { body, tag: alert.id, icon: './icon-192.png' });
  shown.onclick = () => {
    focus();
    location.hash = '#/attention';
  };
}

let sound: AudioContext | undefined;
let until = 0; // in its time

export async function beep() {
  try {
    sound ??= new AudioContext();
    await sound.resume(); // not before the person has clicked or pressed a key on the page
    if (sound.currentTime < until) return; // many together are no louder than one
    until = sound.currentTime + 0.6;
    const tone = sound.createOscillator();
    const volume = sound.createGain();
    tone.frequency.value = 880;
    volume.gain.setValueAtTime(0.2, sound.currentTime);
    volume.gain.exponentialRampToValueAtTime(0.001, until);
    tone.connect(volume).connect(sound.destination);
    tone.start();
    tone.stop(until);
    tone.onended = () => void sound?.suspend();
  } catch {
    // A browser without sound shows the notification.
  }
}
