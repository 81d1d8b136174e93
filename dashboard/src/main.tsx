import "uplot/dist/uPlot.min.css";
import "./style.css";
import { render } from "preact";
import { App } from "./app";
import { Live } from "./live";

const live = new Live();
live.start();
const place = document.getElementById("app");
if (place) render(<App live={live} />, place);
