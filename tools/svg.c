/* SPDX-License-Identifier: Apache-2.0 */
/* The picture as SVG 1.1: plain shapes and texts, no script, no style sheet, so that any viewer shows it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/picture.h"

#define MARGIN      24.0
#define HEADER      64.0
#define LEGEND      40.0
#define FONT        "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif"
#define LINE_HEIGHT 15.0
#define INK         "#1f2937"
#define FAINT       "#6b7280"
#define EDGE        "#7a8699"

static const struct {
        const char *fill, *line, *head;
} palette[] = {
        {"#eaf2fd", "#3b76c4", "#1d4f91"}, {"#eaf7ee", "#3f9a5a", "#23683a"}, {"#fdf3e4", "#c98526", "#8a5610"},
        {"#f4edfb", "#8a5bc2", "#5b3390"}, {"#e6f6f7", "#2d939c", "#17626a"},
};

static void put_escaped(struct af_buf *out, const char *text) {
        for (; text && *text; text++) {
                switch (*text) {
                case '&':
                        af_buf_put_str(out, "&amp;");
                        break;
                case '<':
                        af_buf_put_str(out, "&lt;");
                        break;
                case '>':
                        af_buf_put_str(out, "&gt;");
                        break;
                case '"':
                        af_buf_put_str(out, "&quot;");
                        break;
                default:
                        af_buf_put_u8(out, (unsigned char)*text < 32 ? '?' : (uint8_t)*text);
                }
        }
}

static void put_text(struct af_buf *out, double x, double y, double size, const char *colour, const char *more, const char *text) {
        af_buf_printf(out, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%.1f\" fill=\"%s\" %s>", x, y, size, colour, more);
        put_escaped(out, text);
        af_buf_put_str(out, "</text>\n");
}

static void put_rect(struct af_buf *out, const struct af_picture_shape *s, double radius, const char *fill, const char *line, double width,
                     const char *more) {
        af_buf_printf(out,
                      "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"%.1f\" fill=\"%s\" stroke=\"%s\" "
                      "stroke-width=\"%.1f\" %s/>\n",
                      s->x, s->y, s->w, s->h, radius, fill, line, width, more);
}

/* Title and lines, centred. */
static void put_lines(struct af_buf *out, const struct af_picture_shape *s, const char *title, const char *rest) {
        double x = s->x + s->w / 2, y = s->y + 9 + 11;
        for (uint32_t i = 0; i < s->n_lines; i++, y += LINE_HEIGHT)
                put_text(out, x, y, i ? 10.5 : 13, i ? rest : title,
                         i ? "text-anchor=\"middle\"" : "text-anchor=\"middle\" font-weight=\"bold\"", s->lines[i]);
}

/* Edges run behind the heading: a halo in the box's colour keeps it readable. */
static void put_heading(struct af_buf *out, const struct af_picture_shape *s) {
        for (int halo = 1; halo >= 0; halo--) {
                const char *fill = palette[s->colour].fill;
                char line[96] = "", title[128];
                if (halo)
                        snprintf(line, sizeof(line), "stroke=\"%s\" stroke-width=\"6\" stroke-linejoin=\"round\"", fill);
                snprintf(title, sizeof(title), "font-weight=\"bold\" %s", line);
                put_text(out, s->x + 14, s->y + 20, 13, halo ? fill : palette[s->colour].head, title, s->lines[0]);
                put_text(out, s->x + 14, s->y + 36, 10.5, halo ? fill : FAINT, line, s->lines[1]);
        }
}

static void put_shape(struct af_buf *out, const struct af_picture_shape *s) {
        af_buf_put_str(out, "<g>");
        if (s->tip) {
                af_buf_put_str(out, "<title>");
                put_escaped(out, s->tip);
                af_buf_put_str(out, "</title>");
        }
        af_buf_put_str(out, "\n");
        switch (s->kind) {
        case AF_SHAPE_KIND_KERNEL:
                put_rect(out, s, 12, palette[s->colour].fill, palette[s->colour].line, 1.4, "");
                break;
        case AF_SHAPE_KIND_INPUT:
                put_rect(out, s, s->h / 2, "#f3f4f6", "#9ca3af", 1.2, "");
                put_lines(out, s, INK, FAINT);
                break;
        case AF_SHAPE_KIND_OUTPUT:
                put_rect(out, s, s->h / 2, "#374151", "#374151", 1.2, "");
                put_lines(out, s, "#ffffff", "#d1d5db");
                break;
        case AF_SHAPE_KIND_CONSTANT:
                put_rect(out, s, 4, "#f9fafb", "#c4c9d1", 1.0, "");
                put_lines(out, s, FAINT, FAINT);
                break;
        case AF_SHAPE_KIND_OP:
                put_rect(out, s, 7, "#ffffff", palette[s->colour].line, 1.1, "");
                put_lines(out, s, INK, FAINT);
                break;
        case AF_SHAPE_KIND_VIEW:
                put_rect(out, s, 7, "#f9fafb", "#c4c9d1", 1.0, "");
                put_lines(out, s, FAINT, FAINT);
                break;
        case AF_SHAPE_KIND_FRAMEWORK:
                put_rect(out, s, 7, "#fff5f5", "#c2413b", 1.4, "stroke-dasharray=\"6 4\"");
                put_lines(out, s, "#8f2620", FAINT);
                break;
        case AF_SHAPE_KIND_PORT:
                break;
        }
        af_buf_put_str(out, "</g>\n");
}

static void put_curve(struct af_buf *out, const struct af_picture_curve *c) {
        const double *p = c->points;
        af_buf_printf(out, "<path d=\"M%.1f %.1f", p[0] + c->dx, p[1] + c->dy);
        for (uint32_t i = 1; i < c->n_points; i++) {
                double x0 = p[2 * i - 2] + c->dx, y0 = p[2 * i - 1] + c->dy, x1 = p[2 * i] + c->dx, y1 = p[2 * i + 1] + c->dy,
                       mid = (y0 + y1) / 2;
                if (fabs(x1 - x0) < 0.5 && fabs(y1 - y0) < 0.05)
                        continue;
                if (fabs(x1 - x0) < 0.5)
                        af_buf_printf(out, " L%.1f %.1f", x1, y1);
                else
                        af_buf_printf(out, " C%.1f %.1f %.1f %.1f %.1f %.1f", x0, mid, x1, mid, x1, y1);
        }
        af_buf_printf(out, "\" %s/>\n", c->arrow ? "marker-end=\"url(#arrow)\"" : "");
}

static double put_legend_item(struct af_buf *out, double x, double y, const char *fill, const char *line, double radius, const char *more,
                              const char *text) {
        const struct af_picture_shape s = {.x = x, .y = y, .w = 26, .h = 14};
        put_rect(out, &s, radius, fill, line, 1.2, more);
        put_text(out, x + 34, y + 11, 10.5, FAINT, "", text);
        return x + 34 + af_picture_text_width(text, 10.5, false) + 22;
}

static void put_legend(struct af_buf *out, const struct af_picture *p, double x, double y) {
        x = put_legend_item(out, x, y, palette[0].fill, palette[0].line, 4, "", "kernel");
        x = put_legend_item(out, x, y, "#ffffff", palette[0].line, 4, "", "node in it");
        if (p->has_framework)
                x = put_legend_item(out, x, y, "#fff5f5", "#c2413b", 4, "stroke-dasharray=\"6 4\"", "left to the framework");
        if (p->has_views)
                x = put_legend_item(out, x, y, "#f9fafb", "#c4c9d1", 4, "", "view, costs nothing");
        x = put_legend_item(out, x, y, "#f3f4f6", "#9ca3af", 7, "", "input");
        put_legend_item(out, x, y, "#374151", "#374151", 7, "", "output");
}

void af_picture_svg(const struct af_picture *picture, struct af_buf *out) {
        double head = fmax(af_picture_text_width(picture->title, 18, true), af_picture_text_width(picture->subtitle, 12, false));
        double legend = 330 + (picture->has_framework ? 190 : 0) + (picture->has_views ? 180 : 0);
        double width = fmax(fmax(picture->width, head), legend) + 2 * MARGIN, height = picture->height + 2 * MARGIN + HEADER + LEGEND;
        double dx = (width - picture->width) / 2, dy = MARGIN + HEADER;
        af_buf_printf(
                out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" font-family=\"" FONT
                "\">\n"
                "<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\">"
                "<path d=\"M0 0.8 L8 4 L0 7.2 z\" fill=\"" EDGE "\" stroke=\"none\"/></marker></defs>\n"
                "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
                ceil(width), ceil(height), ceil(width), ceil(height));
        put_text(out, MARGIN, MARGIN + 18, 18, INK, "font-weight=\"bold\"", picture->title);
        put_text(out, MARGIN, MARGIN + 40, 12, FAINT, "", picture->subtitle);
        af_buf_printf(out, "<g transform=\"translate(%.1f %.1f)\">\n", dx, dy);
        uint32_t i = 0;
        for (; i < picture->n_shapes && picture->shapes[i].kind == AF_SHAPE_KIND_KERNEL; i++)
                put_shape(out, &picture->shapes[i]);
        af_buf_put_str(out, "<g fill=\"none\" stroke=\"" EDGE "\" stroke-width=\"1.3\">\n");
        for (uint32_t c = 0; c < picture->n_curves; c++)
                put_curve(out, &picture->curves[c]);
        af_buf_put_str(out, "</g>\n");
        for (uint32_t k = 0; k < i; k++)
                put_heading(out, &picture->shapes[k]);
        for (; i < picture->n_shapes; i++)
                put_shape(out, &picture->shapes[i]);
        af_buf_put_str(out, "</g>\n");
        put_legend(out, picture, MARGIN, height - MARGIN - 14);
        af_buf_put_str(out, "</svg>\n");
}
