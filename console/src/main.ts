import { mount } from 'svelte';
import './style.css';
import App from './App.svelte';
import { language } from './texts/index.svelte';

void language.begin().then(() => mount(App, { target: document.body }));
