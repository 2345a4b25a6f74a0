// Adds a view to the page. It runs before the page's script, which then shows the view.

import { VIEWS } from "/page/js/views/index.js";

VIEWS.push({ path: "drill", label: "Drill", title: "A drill", load: () => import("./view.js") });
