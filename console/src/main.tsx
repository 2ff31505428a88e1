import { render } from "preact";
import { theme } from "./kept";
import { start } from "./store";
import { drawVisibly } from "./visible";
import { App } from "./views/app";

const chosen = theme();
if (chosen === "dark" || chosen === "light") document.documentElement.dataset["theme"] = chosen;

drawVisibly();
const place = document.getElementById("app");
if (place) render(<App />, place);
void start();
