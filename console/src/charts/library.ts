// The library of charts, which pages load when they show one.
import 'uplot/dist/uPlot.min.css';

export { default as Plot } from 'uplot';
