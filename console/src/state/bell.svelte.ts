// Sound and a notification of the desktop for new critical alerts, where a person has asked for them.
import { language, t } from '../texts/index.svelte';
import { alerts } from './alerts.svelte';
import { keep } from './storage';

const stored = 'bell';

class Bell {
  on = $state(localStorage.getItem(stored) === 'on');

  /** Switches it; the browser asks the person once. */
  async toggle() {
    this.on = !this.on;
    keep(localStorage, stored, this.on ? 'on' : 'off');
    if (!this.on) return;
    void beep(); // so that the person knows it, and the browser allows later ones
    if ('Notification' in window && Notification.permission === 'default') await Notification.requestPermission();
  }

  /** Follows alerts until the returned function is called. */
  follow(): () => void {
    return alerts.watch(async ({ change, alert }) => {
      const isNew = (change === 'opened' || change === 'raised') && alert.acknowledged_at === null;
      if (!this.on || !isNew || alert.severity !== 'critical') return;
      void beep();
      if (!('Notification' in window) || Notification.permission !== 'granted') return;
      const { subjectOf, textOf } = await import('./alertWords');
      const body = textOf(alert, t(), language.locale);
      const shown = new Notification(subjectOf(alert), { body, tag: alert.id, icon: './icon-192.png' });
      shown.onclick = () => {
        focus();
        location.hash = '#/attention';
      };
    });
  }
}

let sound: AudioContext | undefined;
let until = 0; // in its time

async function beep() {
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

export const bell = new Bell();
